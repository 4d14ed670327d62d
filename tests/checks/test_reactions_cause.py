"""What set a rebalance off (Z7a, Z7b, Z15a), and reactions of which nothing can be said."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from rest_story import ended, third_joins, two_at_rest

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

BROKERS, MISSED = CHECKS["broker_change_noticed"], CHECKS["missed_watch"]
IDS = "/brokers/ids"


def reacts(story: GroupStory, ms: float, actor: str) -> None:
    """The member reads the list with a watch, the watch fires, and it rebalances."""
    story.asks(ms, actor, "children", IDS, watch=True, zxid=3)
    story.reacts(ms, ms + 20, actor, IDS)


def judged(story: GroupStory) -> Finding:
    return BROKERS.judge(ended(story).history())


def a_broker_comes(world: str = "simulated") -> GroupStory:
    """It comes at 2000 ms with zxid 3; m1 reacts to it. The operations of m1 and m2 are recorded. A reaction is prompt
    within 15 round trips of 2 ms, or live within 14 of 5 ms."""
    story = two_at_rest(world=world, latency_max_us=1000)
    story.asks(1500, "m2", "children", IDS, watch=True, zxid=2)
    story.broker(2000, 1)
    reacts(story, 2010, "m1")
    return story


def test_one_hears_of_it_and_is_triggered() -> None:
    story = a_broker_comes()
    reacts(story, 2020, "m2")
    assert judged(story).outcome is Outcome.CLEAN


def test_a_read_that_sets_the_watch_again_may_be_how_it_heard() -> None:
    story = a_broker_comes()
    story.told(1990, "m2", IDS)  # of an earlier change
    story.asks(1990, "m2", "children", IDS, watch=True, zxid=3)
    story.triggers(2010, "m2", IDS)
    story.rebalances(2010, 2030, "m2")
    assert judged(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("fired_ms", "outcome"), [(1998, Outcome.CLEAN), (1997.999, Outcome.VIOLATED)])
def test_a_watch_that_fired_2_ms_before_the_change_may_be_how_it_heard(fired_ms: float, outcome: Outcome) -> None:
    story = a_broker_comes()
    story.told(fired_ms, "m2", IDS)
    story.triggers(2010, "m2", IDS)
    story.rebalances(2010, 2030, "m2")
    assert judged(story).outcome is outcome


@pytest.mark.parametrize("missing", ["notice", "trigger", "touched path", "watch", "unspent trigger"])
def test_a_rebalance_for_another_reason_does_not_count(missing: str) -> None:
    story = a_broker_comes()
    if missing == "unspent trigger":
        story.told(1700, "m2", IDS)
        story.triggers(1700, "m2", IDS)
        story.rebalances(1700, 1720, "m2")
    if missing == "touched path":
        story.told(2010, "m2", "/consumers/g/ids")
        story.triggers(2010, "m2")
    elif missing != "notice":
        if missing == "watch":
            story.asks(2010, "m2", "children", IDS, zxid=3)
        else:
            story.told(2010, "m2", IDS)
    if missing not in ("trigger", "touched path", "unspent trigger"):
        story.triggers(2011, "m2", IDS)
    began = story.rebalances(2500, 2520, "m2")
    finding = judged(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 2), began))
    assert finding.why == "g_m2 began a rebalance 0.500 s after /brokers/ids/1 came, but for another reason"


def test_the_second_rebalance_may_be_the_one_that_was_set_off() -> None:
    story = a_broker_comes()
    story.rebalances(2010, 2030, "m2")
    reacts(story, 2040, "m2")
    assert judged(story).measures["longest_us"] == 40_000


@pytest.mark.parametrize(
    ("world", "heard_ms", "outcome"),
    [
        ("simulated", 2030, Outcome.CLEAN),
        ("simulated", 2030.001, Outcome.VIOLATED),
        ("processes", 2070, Outcome.CLEAN),
        ("processes", 2070.001, Outcome.UNKNOWN),  # it may have stood still
    ],
)
def test_who_hears_of_it_rebalances_promptly(world: str, heard_ms: float, outcome: Outcome) -> None:
    story = a_broker_comes(world)
    story.told(2000, "m2", IDS)
    story.triggers(2001, "m2", IDS)
    story.rebalances(heard_ms, 2100, "m2")
    assert judged(story).outcome is outcome


def test_a_fault_may_make_it_late() -> None:
    story = a_broker_comes()
    story.told(2000, "m2", IDS)
    story.triggers(2001, "m2", IDS)
    story.fault(2001, "lag", "zookeeper")
    story.rebalances(2300, 2320, "m2")
    finding = judged(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.endswith("it was disturbed then, or its rebalance had an unknown trigger")


@pytest.mark.parametrize(("by", "outcome"), [("topics", Outcome.CLEAN), (None, Outcome.VIOLATED)])
def test_another_rebalance_of_its_own_delays_it(by: str | None, outcome: Outcome) -> None:
    story = a_broker_comes()
    story.told(2000, "m2", IDS)
    if by is not None:
        story.rebalances(2002, 2500, "m2", by=by)
    story.triggers(2510, "m2", IDS)
    story.rebalances(2511, 2520, "m2")
    assert judged(story).outcome is outcome


def test_a_rebalance_that_its_watcher_does_not_run_is_for_another_reason() -> None:
    story = a_broker_comes()
    story.told(2010, "m2", IDS)
    story.triggers(2010, "m2", IDS)
    story.rebalances(2011, 2020, "m2", by="session")
    assert judged(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("by", "outcome"), [("watcher", Outcome.VIOLATED), ("session", Outcome.CLEAN)])
def test_a_rebalance_of_the_watcher_spends_the_triggers_before_it(by: str, outcome: Outcome) -> None:
    story = a_broker_comes()
    story.triggers(1700, "m2", IDS)
    story.rebalances(1700, 1720, "m2", by=by)
    story.told(2010, "m2", IDS)
    story.rebalances(2011, 2030, "m2")
    assert judged(story).outcome is outcome


def test_a_fault_that_was_over_excuses_nothing() -> None:
    story = a_broker_comes()
    began = story.fault(1100, "lag", "zookeeper")
    story.ended(1200, "lag", "zookeeper", began)
    story.told(2000, "m2", IDS)
    story.triggers(2001, "m2", IDS)
    story.rebalances(2300, 2320, "m2")
    assert judged(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("fired_ms", "triggered_ms", "outcome"),
    [
        (2000, 2001, Outcome.CLEAN),
        (1990, 2000, Outcome.UNKNOWN),  # the read that set the watch again, which is not recorded, may have shown it
        (1990, 1999.999, Outcome.VIOLATED),
        (None, 2000, Outcome.UNKNOWN),
        (2000, None, Outcome.VIOLATED),
    ],
)
def test_where_operations_are_only_counted(
    fired_ms: float | None, triggered_ms: float | None, outcome: Outcome
) -> None:
    story = two_at_rest(latency_max_us=1000)
    story.broker(2000, 1)
    for actor in ("m1", "m2"):
        story.counted(1500, actor, children=1)
    story.reacts(2010, 2030, "m1", IDS)
    if fired_ms is not None:
        story.told(fired_ms, "m2", IDS)
    if triggered_ms is not None:
        story.triggers(triggered_ms, "m2", IDS)
    story.rebalances(2010, 2030, "m2")
    assert judged(story).outcome is outcome


def test_a_change_of_members_must_set_the_rebalance_off_too() -> None:
    story = two_at_rest()
    change = third_joins(story, ("m1", 2010))
    began = story.rebalances(2010, 2030, "m2")
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change, began))
    assert finding.why == "g_m2 began a rebalance 0.010 s after /consumers/g/ids/g_m3 came, but for another reason"


@pytest.mark.parametrize(
    ("op", "zxid", "by", "outcome"),
    [
        (None, 0, "create", Outcome.CLEAN),
        (None, 0, "watcher", Outcome.VIOLATED),
        ("children", 4, "create", Outcome.CLEAN),
        ("children", 3, "create", Outcome.VIOLATED),  # its watch was set, and did not fire
        ("exists", 3, "create", Outcome.CLEAN),  # it does not report children
    ],
)
def test_a_member_need_not_hear_of_what_came_before_its_watch(
    op: str | None, zxid: int, by: str, outcome: Outcome
) -> None:
    """m3 registers with zxid 3, m4 with zxid 4."""
    story = two_at_rest()
    story.joins(2000, "m3")
    story.joins(2001, "m4")
    for actor in ("m1", "m2"):
        story.reacts(2010, 2020, actor)
    if op is not None:
        story.asks(2003, "m3", op, "/consumers/g/ids", watch=True, zxid=zxid)
    story.rebalances(2004, 2020, "m3", by=by)
    assert MISSED.judge(ended(story).history()).outcome is outcome


def test_its_first_rebalance_has_the_deadline_of_all() -> None:
    story = two_at_rest()
    story.joins(2000, "m3")
    story.joins(2001, "m4")
    for actor in ("m1", "m2"):
        story.reacts(2010, 2020, actor)
    story.rebalances(4004, 4020, "m3", by="create")
    finding = MISSED.judge(ended(story).history())
    assert finding.why == "g_m3 began a rebalance only 2.003 s after /consumers/g/ids/g_m4 came"


@pytest.mark.parametrize(
    ("by", "until_ms", "outcome"),
    [
        ("topics", 7000, Outcome.CLEAN),
        ("session", 7000, Outcome.CLEAN),
        ("topics", 6997, Outcome.VIOLATED),
        ("watcher", 7000, Outcome.VIOLATED),
    ],
)
def test_the_bound_counts_from_the_end_of_its_rebalance_on_the_event_thread(
    by: str, until_ms: float, outcome: Outcome
) -> None:
    """The bound is 2 s."""
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.rebalances(4000, until_ms, "m2", by=by)
    story.reacts(9000, 9010, "m2")
    assert MISSED.judge(ended(story, 20_000).history()).outcome is outcome


@pytest.mark.parametrize("ends", [True, False])
def test_a_rebalance_on_the_event_thread_that_goes_on_leaves_it_open(ends: bool) -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.begins(4000, "m2", by="topics")
    if ends:
        story.phase(9000, "closing")
        story.ends(9010, "m2")
    else:
        story.phase(9000, "closing")
    assert MISSED.judge(story.history()).outcome is Outcome.UNKNOWN


def test_a_member_that_blinked_leaves_it_open() -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.add(2003, "m2", Kind.DISCONNECTED, group=None)
    story.add(2004, "m2", Kind.CONNECTED, group=None, session="0x2")
    finding = MISSED.judge(ended(story).history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == (
        "it is not known whether g_m2 reacted to the change of /consumers/g/ids/g_m3: it was disturbed then"
    )


def test_a_member_that_left_leaves_nothing_open() -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.member(2500, "m2", Kind.MEMBER_CLOSING)
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


@pytest.mark.parametrize("missing", ["all", "session"])
def test_a_member_of_which_nothing_was_recorded_leaves_it_open(missing: str) -> None:
    story = two_at_rest(recorded=False)
    third_joins(story, ("m1", 2010), ("m2", 2010))
    if missing == "session":
        story.add(50, "m4", Kind.MEMBER_STARTED, member="g_m4", group="g", detail={"rules": "shipped"})
    story.registers(60, "m4")
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "g_m4 is registered by session 0x4, which no process recorded",
    )
