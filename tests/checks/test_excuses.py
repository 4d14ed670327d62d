"""Rebalances that may end without giving anything up (Z5a): all attempts failed, or the member was shutting down."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from test_check_order_in_rebalance import judge, owner_of_two

from rebalance_lab.checks import Outcome
from rebalance_lab.history.events import Kind


@pytest.mark.parametrize(("answers", "outcome"), [
    ((Kind.FAILED_OP, Kind.FAILED_OP), Outcome.CLEAN), ((Kind.FAILED_OP, Kind.DISCONNECTED), Outcome.CLEAN),
    ((Kind.FAILED_OP, Kind.OK), Outcome.UNKNOWN), ((Kind.FAILED_OP,), Outcome.UNKNOWN),
])  # fmt: skip
def test_attempts_that_failed_for_a_reason_that_is_known_may_have_released_nothing(
    answers: Sequence[Kind], outcome: Outcome
) -> None:
    """An attempt that fails in its first steps has released nothing (F6)."""
    story = owner_of_two()
    for ms, kind in zip((1010, 1050), answers, strict=False):
        story.add(ms, "m1", kind, group=None)
        story.fails(ms + 10, "m1", "error")
        if ms == 1010:
            story.attempts(1040, "m1")
    story.ends(1100, "m1", "failed")
    assert judge(story).outcome is outcome


def test_a_rebalance_that_failed_without_an_attempt_leaves_it_open() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0, 1)
    story.ends(1100, "m1")
    story.member(1200, "m1", Kind.REBALANCE_BEGAN, detail={"by": "watcher"})
    story.ends(1300, "m1", "failed")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "g_m1 ended a rebalance without giving up t/0, "
        "unless it failed before its release, for a reason that the history does not show",
    )


@pytest.mark.parametrize(("closing_ms", "outcome"), [(1100, Outcome.CLEAN), (1100.001, Outcome.VIOLATED)])
def test_who_is_shutting_down_may_keep_what_it_had(closing_ms: float, outcome: Outcome) -> None:
    story = owner_of_two()
    story.decides(1020, "m1", [0])
    story.member(closing_ms, "m1", Kind.MEMBER_CLOSING)
    story.ends(1100, "m1", "shutdown")
    assert judge(story).outcome is outcome


@pytest.mark.parametrize(("kind", "outcome"), [(Kind.EXPIRED, Outcome.CLEAN), (Kind.CONNECTED, Outcome.UNKNOWN)])
def test_an_attempt_may_fail_because_its_session_expired(kind: Kind, outcome: Outcome) -> None:
    story = owner_of_two()
    story.add(1010, "m1", kind, group=None, session="0x1")
    story.fails(1020, "m1", "error")
    story.ends(1100, "m1", "failed")
    assert judge(story).outcome is outcome


@pytest.mark.parametrize("witnessed", [True, False])
def test_an_attempt_may_fail_on_a_conflict_that_the_registry_witnesses(witnessed: bool) -> None:
    """m1 keeps t/0 and t/1 while its only attempt fails over t/2, which m2 owns."""
    story = owner_of_two()
    story.joins(200, "m2")
    if witnessed:
        story.begins(290, "m2")
        story.claims(300, "m2", 2)
        story.ends(310, "m2")
    story.meets(1020, "m1", [2])
    story.ends(1100, "m1", "failed")
    assert judge(story).outcome is (Outcome.CLEAN if witnessed else Outcome.UNKNOWN)
