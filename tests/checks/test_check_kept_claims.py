"""The premise of Z16, on tiny histories: does a member wait with what it claimed?"""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.bounds import bounds
from rebalance_lab.history.events import Kind

CHECK = "kept_claims"


def conflict(
    *, given_back_ms: float | None, claimed_ms: float = 300, session: str = "0x1", **told: object
) -> GroupStory:
    """m1 claims t/0, meets m2's claim of t/1, and waits from 500 to 1000; what it claimed it
    gives back at `given_back_ms`. `session`: in which m1's znode was made."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    for actor in ("m1", "m2"):
        story.joins(0, actor)
    story.claims(100, "m2", 1)
    story.rest(150)
    story.begins(200, "m1")
    story.decides(250, "m1", (0, 1))
    if session == "0x1":
        story.claims(claimed_ms, "m1", 0)
    else:
        story.created(claimed_ms, "m1", 0, session)
    if given_back_ms is not None:
        story.releases(given_back_ms, "m1", 0)
    story.fails(500, "m1", conflicts=(1,))
    story.attempts(1000, "m1")
    story.ends(1100, "m1", attempts=2)
    return story


def found(story: GroupStory) -> Finding | None:
    check, history = CHECKS[CHECK], story.history()
    return check.judge(history) if check.applies(history) else None


def test_who_gives_back_before_it_waits_keeps_nothing() -> None:
    finding = found(conflict(given_back_ms=450))
    assert finding is not None
    assert (finding.outcome, finding.measures) == ("clean", {"count": 0, "waits": 1})


def test_who_waits_with_what_it_claimed_keeps_it() -> None:
    story = conflict(given_back_ms=None)
    finding = found(story)
    assert finding is not None
    assert finding.outcome == "violated"
    assert finding.why == "g_m1 kept t/0 while it waited to try again"
    failed = next(event.id for event in story.events if event.kind is Kind.ATTEMPT_FAILED)
    claimed = next(event.id for event in story.events if event.partition == 0)
    assert finding.witness == (failed, claimed)


@pytest.mark.parametrize(("late_ms", "lag", "outcome"), [
    (0, False, Outcome.CLEAN), (0.001, False, Outcome.VIOLATED), (0.001, True, Outcome.CLEAN),
])  # fmt: skip
def test_who_owns_longer_than_requests_take_waits_within_its_attempt(
    late_ms: float, lag: bool, outcome: Outcome
) -> None:
    """From the first claim that is refused; while a server lags requests take longer."""
    requests_ms = bounds(conflict(given_back_ms=None).history()).requests_us / 1000
    story = conflict(given_back_ms=310 + requests_ms + 2 + late_ms)
    story.refused(310, "m1")
    if lag:
        began = story.fault(305, "lag", "z1")
        story.bit(306, "lag", "z1", began)
        story.ended(311, "lag", "z1", began)
    finding = found(story)
    assert finding is not None
    assert finding.outcome is outcome


def test_who_gives_back_while_it_waits_has_kept_it() -> None:
    finding = found(conflict(given_back_ms=800))
    assert finding is not None
    assert finding.outcome == "violated"


@pytest.mark.parametrize(
    ("again_ms", "outcome"),
    [(600, "violated"), (997, "violated"), (998, "violated"), (998.001, "clean"), (1050, "clean")],
)
def test_who_claims_again_while_it_waits_keeps_it(again_ms: float, outcome: str) -> None:
    """A claim less than 2 ms before the next attempt began may be that attempt's."""
    story = conflict(given_back_ms=450)
    story.claims(again_ms, "m1", 0)
    finding = found(story)
    assert finding is not None
    assert finding.outcome == outcome


def test_a_wait_without_an_end_goes_on_to_the_end_of_the_history() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.joins(0, "m2")
    story.claims(100, "m2", 1)
    story.rest(150)
    story.begins(200, "m1")
    story.claims(300, "m1", 0)
    story.releases(450, "m1", 0)
    story.fails(500, "m1", conflicts=(1,))
    story.claims(900, "m1", 0)
    finding = found(story)
    assert finding is not None
    assert finding.outcome == "violated"


def test_what_is_kept_from_an_attempt_before_counts_too() -> None:
    story = conflict(given_back_ms=None)
    story.fails(1050, "m1", conflicts=(1,))
    finding = found(story)
    assert finding is not None
    assert finding.measures == {"count": 2, "waits": 2}


def test_two_clocks_leave_two_milliseconds_in_doubt() -> None:
    for given_back_ms, outcome in ((502, "clean"), (503, "violated")):
        finding = found(conflict(given_back_ms=given_back_ms))
        assert finding is not None
        assert finding.outcome == outcome


def test_a_znode_of_another_process_with_its_name_is_not_its_own() -> None:
    assert found(conflict(given_back_ms=None, session="0x9")) is None


def test_nothing_is_said_where_nobody_could_keep_anything() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.rest(150)
    story.begins(200, "m1")
    story.fails(500, "m1", conflicts=(1,))
    assert not CHECKS[CHECK].applies(story.history())


@pytest.mark.parametrize(("reason", "outcome"), [
    ("conflict", "violated"), ("error", "violated"), ("of its own", "violated"), ("shutdown", None),
])  # fmt: skip
def test_what_a_member_calls_its_failure_plays_no_part(reason: str, outcome: str | None) -> None:
    story = conflict(given_back_ms=None)
    for event in story.events:
        if event.kind is Kind.ATTEMPT_FAILED and event.detail is not None:
            event.detail["reason"] = reason
    finding = found(story)
    assert (finding and finding.outcome) == outcome


def test_who_gave_back_is_clean_in_full() -> None:
    why = "every member released its claims before it waited to try again"
    assert found(conflict(given_back_ms=450)) == Finding(Outcome.CLEAN, why, (), {"count": 0, "waits": 1})


def test_all_that_it_kept_is_told() -> None:
    story = conflict(given_back_ms=None)
    story.claims(310, "m1", 2)
    finding = found(story)
    assert finding is not None
    assert finding.why == "g_m1 kept t/0, t/2 while it waited to try again"


def test_a_clock_that_drifted_leaves_it_open() -> None:
    finding = found(conflict(given_back_ms=450, wall_drift_us=2_001))
    assert finding is not None
    assert finding.outcome is Outcome.UNKNOWN


def test_where_nobody_waited_it_cannot_be_told() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.rest(150)
    finding = CHECKS[CHECK].judge(story.history())
    assert finding.why == "no member had claimed anything when an attempt failed"


@pytest.mark.parametrize(("claimed_ms", "given_back_ms", "measures"), [
    (198, 450, {"count": 0, "waits": 1}),  # 2 ms before the attempt it may be of it
    (197.999, 450, None),
    (201, 450, {"count": 0, "waits": 1}),
    (500, 501, {"count": 0, "waits": 1}),  # with the failure: of the attempt
    (500, None, {"count": 1, "waits": 1}),
    (500.001, 501, None),
])  # fmt: skip
def test_what_is_claimed_in_an_attempt(
    claimed_ms: float, given_back_ms: float | None, measures: dict[str, int] | None
) -> None:
    finding = found(conflict(given_back_ms=given_back_ms, claimed_ms=claimed_ms))
    assert (finding and finding.measures) == measures
