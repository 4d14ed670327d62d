"""Which rebalances were carried out: what a member reports must show in what it asked, or in the registry."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from group_story import GroupStory
from rest_story import ended, third_joins, two_at_rest

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.wire.warnings import NO_BROKERS

MISSED = CHECKS["missed_watch"]
IDS = "/consumers/g/ids"

Deed = Callable[[GroupStory], object]


def nothing(_story: GroupStory) -> None:
    pass


def reads(ms: float, path: str = IDS) -> Deed:
    return lambda story: story.reads(ms, "m2", path)


def decides(*wants: int, ms: float = 2020) -> Deed:
    return lambda story: story.decides(ms, "m2", wants)


def carried_out(*deeds: Deed, outcome: str | None = "ok", counted: bool = False) -> bool:
    """Whether a rebalance of m2 from 2010 to 2030 ms, with these deeds in it, is its reaction to a join. Its requests
    are recorded, or counted."""
    story = two_at_rest()
    story.broker(500, 0)
    if counted:
        story.counted(1500, "m2", get=1)
    else:
        story.asks(1500, "m2", "children", IDS)
    third_joins(story, ("m1", 2010))
    story.told(2010, "m2")
    story.triggers(2010, "m2")
    story.begins(2010, "m2")
    for deed in deeds:
        deed(story)
    if outcome is not None:
        story.ends(2030, "m2", outcome)
    found = MISSED.judge(ended(story).history())
    assert found.outcome is Outcome.CLEAN or found.why == f"g_m2 did not rebalance after {IDS}/g_m3 came"
    return found.outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("deeds", "done"),
    [
        ([], False),
        ([decides()], False),
        ([reads(2015)], False),
        ([reads(2015), decides()], True),
        ([reads(2015, "/consumers/h/ids"), decides()], False),
        ([lambda story: story.asks(2015, "m2", "children", IDS), decides()], False),
        ([decides(), reads(2025)], False),
        ([lambda story: story.asks(2015, "m2", "exists", IDS), decides()], False),
    ],
)
def test_a_decision_follows_from_the_list_of_members(deeds: list[Deed], done: bool) -> None:
    assert carried_out(*deeds) is done


def test_what_the_member_read_before_its_attempt_does_not_count() -> None:
    """m2 read the list at 1500 ms."""
    assert not carried_out(decides())


@pytest.mark.parametrize(
    ("ms", "count", "done"),
    [
        (2015, 9, True),  # 7, and the two members that the decision names
        (2015, 8, False),
        (2020.001, 9, True),  # they may have been before the decision
        (2020.002, 9, False),
        (2010, 9, True),
        (2009.999, 9, False),
    ],
)
def test_counted_operations_must_be_as_many_as_an_attempt_makes(ms: float, count: int, done: bool) -> None:
    """Reads of the last µs before `ms`."""
    assert carried_out(lambda story: story.counted(ms, "m2", get=count), decides(), counted=True) is done


def test_writes_are_no_reads() -> None:
    assert not carried_out(lambda story: story.counted(2015, "m2", get=8, create=9), decides(), counted=True)


def claims(ms: float, actor: str = "m2", until_ms: float | None = None) -> Deed:
    def deed(story: GroupStory) -> None:
        story.claims(ms, actor, 0)
        if until_ms is not None:
            story.releases(until_ms, actor, 0)

    return deed


@pytest.mark.parametrize(
    ("deed", "done"),
    [
        (nothing, False),
        (claims(2025), True),
        (claims(2032), True),
        (claims(2032.001), False),
        (claims(1200), True),  # it kept it
        (claims(1200, until_ms=2008), True),
        (claims(1200, until_ms=2007.999), False),
        (claims(2025, "m1"), False),
        (lambda story: story.refused(2025, "m2"), True),
        (lambda story: story.refused(2032, "m2"), True),
        (lambda story: story.refused(2033, "m2"), False),
        (lambda story: story.refused(2025, "m2", code=-101), False),
        (lambda story: story.refused(2025, "m1"), False),
    ],
)
def test_it_claims_what_it_wants_or_owns_it(deed: Deed, done: bool) -> None:
    assert carried_out(deed, reads(2015), decides(0)) is done


@pytest.mark.parametrize(("wants", "done"), [((0,), True), ((0, 1), False)])
def test_it_claims_all_that_it_wants(wants: tuple[int, ...], done: bool) -> None:
    assert carried_out(claims(2025), reads(2015), decides(*wants)) is done


def test_of_two_wants_one_may_be_claimed_and_one_refused() -> None:
    assert carried_out(claims(2025), lambda story: story.refused(2026, "m2"), reads(2015), decides(0, 1))


def fails(story: GroupStory) -> None:
    story.fails(2020, "m2")


@pytest.mark.parametrize("outcome", ["failed", "shutdown"])
@pytest.mark.parametrize(
    ("deeds", "done"), [([], False), ([fails], False), ([reads(2015), fails], True), ([fails, reads(2025)], False)]
)
def test_an_attempt_fails_after_a_request(outcome: str, deeds: list[Deed], done: bool) -> None:
    assert carried_out(*deeds, outcome=outcome) is done


def test_a_failed_attempt_does_not_stand_for_one_that_succeeds() -> None:
    failed = [reads(2012), lambda story: story.fails(2014, "m2"), lambda story: story.attempts(2016, "m2")]
    assert not carried_out(*failed)
    assert not carried_out(*failed, decides())
    assert carried_out(*failed, reads(2018), decides())


def test_an_attempt_with_kept_claims_goes_on_with_the_former_decision() -> None:
    held = [reads(2012), decides(0, ms=2013), lambda story: story.fails(2014, "m2"), claims(2025)]
    assert carried_out(*held, lambda story: story.attempts(2016, "m2"))


@pytest.mark.parametrize(("warns", "gone", "done"), [(True, True, True), (True, False, False), (False, True, False)])
def test_an_attempt_that_finds_no_broker_says_so(warns: bool, gone: bool, done: bool) -> None:
    def deed(story: GroupStory) -> None:
        if gone:
            story.broker(2011, 0, Kind.DELETED)
        if warns:
            story.member(2012, "m2", Kind.WARNED, detail={"message": NO_BROKERS})

    assert carried_out(deed) is done


def test_a_rebalance_in_which_the_history_ends_counts() -> None:
    assert carried_out(outcome=None)


@pytest.mark.parametrize("failed", [True, False])
def test_where_requests_are_not_recorded_they_are_not_asked_for(failed: bool) -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.told(2010, "m2")
    story.triggers(2010, "m2")
    story.begins(2010, "m2")
    if failed:
        story.fails(2015, "m2")
    else:
        story.decides(2015, "m2", [])
    story.ends(2020, "m2", "failed" if failed else "ok")
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN
