"""The bound of an unowned window: the settings of the members that it is about."""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome

#: m1 has the trial's settings: bounds of 2 s, and 5 s of belief.
PATIENT = {"rebalance_max_retries": 100, "session_timeout_ms": 100_000}


def judge(story: GroupStory) -> Finding:
    return CHECKS["unowned_window"].judge(story.history())


def _with_patient(**settings: Any) -> GroupStory:
    """m1, alive from 100 ms, and m2 with other settings, which is there and connected all the time."""
    story = GroupStory()
    story.topic(0, "t", 1)
    for actor, its in (("m1", {}), ("m2", settings)):
        story.comes(0, actor, **its)
        story.registers(10, actor)
    story.rebalanced(100, "m1")
    return story


def _absent(story: GroupStory, claims: str = "m1") -> None:
    """t/0 has no owner from 1 s to 8 s; then `claims` owns it."""
    story.owned(90, "m1")
    story.created(90, "m1")
    story.disowned(1_000, "m1")
    story.deleted(1_000, "m1")
    story.created(8_000, claims)
    story.owned(8_000, claims)
    story.phase(9_000, "closing")
    story.rest(9_000)


def test_a_patient_member_that_does_not_want_the_partition_excuses_nothing() -> None:
    story = _with_patient(**PATIENT)
    story.begins(900, "m2")
    story.decides(950, "m2", (1,))
    story.ends(8_100, "m2")
    _absent(story)
    finding = judge(story)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.endswith("the bound is 2.000 s")
    assert finding.measures["count"] == 2
    assert finding.measures["bound_us"] == 50_000_000


def test_a_patient_member_that_claims_the_partition_may_take_its_time() -> None:
    story = _with_patient(**PATIENT)
    _absent(story, claims="m2")
    assert judge(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("began_ms", "ended_ms", "outcome"), [
    (900, 1_000, Outcome.CLEAN), (900, 999.999, Outcome.VIOLATED),
    (8_000, 8_500, Outcome.CLEAN), (8_000.001, 8_500, Outcome.VIOLATED), (2_000, None, Outcome.CLEAN),
])  # fmt: skip
def test_one_that_wanted_it_in_a_rebalance_of_that_time_may_too(
    began_ms: float, ended_ms: float | None, outcome: Outcome
) -> None:
    story = _with_patient(**PATIENT)
    story.begins(began_ms, "m2")
    story.decides(began_ms, "m2", (0,))
    if ended_ms is not None:
        story.ends(ended_ms, "m2", "failed")
    _absent(story)
    assert judge(story).outcome is outcome


def test_a_window_that_nobody_wanted_to_end_has_the_group_s_bound() -> None:
    story = _with_patient(**PATIENT)
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.phase(9_000, "closing")
    assert judge(story).measures["count"] == 0


def test_a_long_session_excuses_a_window_of_belief_only_if_its_member_was_away() -> None:
    for away in (False, True):
        story = _with_patient(session_timeout_ms=100_000)
        if away:
            story.paused(500, 8_000, "m2")
        story.owned(90, "m1")
        story.created(90, "m1")
        story.disowned(1_000, "m1")
        story.owned(8_000, "m1")
        story.phase(9_000, "closing")
        story.rest(9_000)
        assert judge(story).outcome is (Outcome.CLEAN if away else Outcome.VIOLATED), away


def test_a_rest_ends_no_patience_with_belief() -> None:
    """A rest is told by the registry, where the partition has its owner."""
    story = _with_patient()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.disowned(1_000, "m1")
    story.rest(2_000)
    story.owned(3_000, "m1")
    story.phase(9_000, "closing")
    story.rest(9_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_all_doubts_about_what_was_due_are_named() -> None:
    story = _with_patient()
    story.owned(90, "m1")
    story.created(90, "m1")
    for actor in ("m3", "m4"):
        story.started(0, actor)
        story.rebalanced(100, actor)
    story.rest(9_000)
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "g_m3 was alive but never registered; g_m4 was alive but never registered"
