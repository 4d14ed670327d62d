"""Which rebalances come after a change: by what their member had heard, else by time."""

from __future__ import annotations

import pytest
from rest_story import ended, third_joins, two_at_rest

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import Kind

MISSED = CHECKS["missed_watch"]


@pytest.mark.parametrize(
    ("world", "at_ms", "outcome"),
    [
        ("processes", 1998.001, Outcome.CLEAN),
        ("processes", 1998, Outcome.VIOLATED),
        ("simulated", 2000, Outcome.CLEAN),  # the simulator has one clock
        ("simulated", 1999.999, Outcome.VIOLATED),
        ("simulated", 4002, Outcome.CLEAN),
        ("simulated", 4002.001, Outcome.VIOLATED),
    ],
)
def test_two_clocks_leave_2_ms(world: str, at_ms: float, outcome: Outcome) -> None:
    story = two_at_rest(world=world)
    third_joins(story, ("m1", 2010), ("m2", at_ms))
    assert MISSED.judge(ended(story).history()).outcome is outcome


@pytest.mark.parametrize("world", ["processes", "simulated"])
@pytest.mark.parametrize("at_ms", [1998.001, 1999.999, 2000, 2001, 2002])
@pytest.mark.parametrize("kind", [Kind.WATCH_FIRED, Kind.OK, Kind.FAILED_OP])
def test_within_these_2_ms_who_had_not_heard_of_the_change_does_not_react_to_it(
    world: str, at_ms: float, kind: Kind
) -> None:
    """The third id is zxid 3; m2 has heard of zxid 2 only, or of the third when its rebalance has begun."""
    for zxid, after, outcome in ((2, 3, Outcome.VIOLATED), (3, 3, Outcome.CLEAN), (4, 3, Outcome.CLEAN)):
        story = two_at_rest(world=world, latency_max_us=1000)
        for actor in ("m1", "m2"):
            story.asks(1500, actor, "get", "/brokers/ids/0", zxid=2)
        story.add(1998, "m2", kind, group=None, zxid=zxid, detail={"path": "/consumers/g/ids"})
        third_joins(story, ("m1", 2010), ("m2", at_ms))
        story.elsewhere(2003, up_to=4)
        story.add(2003, "m2", kind, group=None, zxid=after, detail={"path": "/consumers/g/ids"})
        finding = MISSED.judge(ended(story).history())
        assert finding.outcome is outcome, zxid


def test_what_a_member_had_heard_is_the_latest_of_all_replies() -> None:
    story = two_at_rest()
    for zxid in (3, 2):  # a write's reply may be followed by one of a server that lags
        story.asks(1999, "m2", "get", "/brokers/ids/0", zxid=zxid)
    third_joins(story, ("m1", 2010), ("m2", 1999.5))
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_of_a_rebalance_that_begins_later_it_is_not_asked_which_zxid_its_member_had_heard_of() -> None:
    story = two_at_rest()
    story.asks(1500, "m2", "get", "/brokers/ids/0", zxid=2)
    third_joins(story, ("m1", 2010), ("m2", 2002.001))
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_of_two_rebalances_about_a_change_the_one_that_follows_it_counts() -> None:
    story = two_at_rest()
    story.asks(1500, "m2", "get", "/brokers/ids/0", zxid=2)
    story.rebalances(1999, 2009, "m2")
    third_joins(story, ("m1", 2010), ("m2", 2050))
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 50_000)


def test_with_operations_counted_a_notification_alone_convicts_nobody() -> None:
    """The watch was not set again yet; the read that sets it again saw the change, and was only counted."""
    story = two_at_rest()
    story.add(2000, "m2", Kind.WATCH_FIRED, group=None, zxid=2, detail={"path": "/consumers/g/ids"})
    third_joins(story, ("m1", 2010))
    story.triggers(2000, "m2")
    story.rebalances(2000, 2020, "m2")
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_who_begins_up_to_2_ms_before_the_change_took_no_time() -> None:
    story = two_at_rest(world="processes")
    third_joins(story, ("m1", 1998.001), ("m2", 1999))
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 0)


@pytest.mark.parametrize(("heard", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)])
def test_the_first_reply_of_all_may_be_how_it_heard(heard: bool, outcome: Outcome) -> None:
    """m2 begins within 2 ms of the change, whose zxid is 3, and reads the list then: no reply came before."""
    story = two_at_rest(world="processes")
    if heard:
        story.add(1998, "m2", Kind.OK, group=None, zxid=3, detail={"path": "/consumers/g/ids"})
    third_joins(story, ("m1", 2010))
    story.told(1999, "m2")
    story.triggers(1999, "m2")
    story.begins(1999, "m2")
    story.reads(2003, "m2", zxid=3)
    story.decides(2004, "m2", [])
    story.ends(2020, "m2")
    assert MISSED.judge(ended(story).history()).outcome is outcome


def test_where_replies_name_no_zxid_a_rebalance_at_the_change_needs_a_trigger() -> None:
    for triggered, outcome in ((True, Outcome.CLEAN), (False, Outcome.VIOLATED)):
        story = two_at_rest(world="processes")
        third_joins(story, ("m1", 2010))
        story.told(1999, "m2")
        if triggered:
            story.triggers(2000, "m2")
        story.begins(2000, "m2")
        for number in range(9):
            path = "/brokers/ids" if number else "/consumers/g/ids"
            detail = {"op": "children", "path": path}
            story.add(2001, "m2", Kind.INVOKED, group=None, session="0x2", detail=detail)
            story.add(2002, "m2", Kind.OK, group=None, session="0x2", detail=detail)
        story.decides(2004, "m2", [])
        story.ends(2020, "m2")
        assert MISSED.judge(ended(story).history()).outcome is outcome


@pytest.mark.parametrize("world", ["processes", "simulated"])
@pytest.mark.parametrize(("triggered", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)])
def test_with_operations_counted_a_rebalance_at_the_change_needs_a_trigger(
    world: str, triggered: bool, outcome: Outcome
) -> None:
    story = two_at_rest(world=world)
    story.counted(1500, "m2", children=1)
    third_joins(story, ("m1", 2010))
    story.told(2001, "m2")
    if triggered:
        story.triggers(2001, "m2")
    story.rebalances(2001, 2020, "m2")
    story.asks(9000, "m2", "close", "", zxid=3)  # the one operation that is recorded
    assert MISSED.judge(ended(story).history()).outcome is outcome
