"""What the runner reports, against what members and the registry report."""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory
from history_story import Story

from rebalance_lab.checks.disturbances import incoherence
from rebalance_lab.history.events import Kind


def rested(**told: Any) -> GroupStory:
    """m1 joins at 0 and has rebalanced by 1 s. Rest asks for a quiet of 1 s, two back-offs."""
    story = GroupStory(**told)
    story.comes(0, "m1", work_period_ms=50)
    story.registers(10, "m1")
    story.rebalances(900, 1_000, "m1")
    return story


def contradiction(story: GroupStory) -> str | None:
    return incoherence(story.history())


# -- rests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ms", "why"), [
    (1_998, None), (1_997.999, "the runner reports a rest (runner/0), but the last change was 0.998 s before"),
])  # fmt: skip
def test_a_rest_follows_a_quiet_time(ms: float, why: str | None) -> None:
    story = rested()
    story.rest(ms)
    assert contradiction(story) == why


def test_a_rest_in_a_rebalance_is_none() -> None:
    story = rested()
    story.begins(1_500, "m1")
    story.rest(4_000)
    assert contradiction(story) == "the runner reports a rest (runner/0), but m1: it rebalances"


@pytest.mark.parametrize(("ms", "coherent"), [(2_998.001, True), (2_998, False)])
def test_what_begins_within_2_ms_of_a_rest_may_have_come_after_it(ms: float, *, coherent: bool) -> None:
    story = rested()
    story.begins(ms, "m1")
    story.rest(3_000)
    assert (contradiction(story) is None) is coherent


def test_a_second_rest_is_looked_at_too() -> None:
    story = rested()
    story.rest(3_000)
    story.begins(3_100, "m1")
    story.rest(5_000)
    assert contradiction(story) == "the runner reports a rest (runner/1), but m1: it rebalances"


def test_a_missed_rest_contradicts_nothing() -> None:
    story = rested()
    story.begins(1_500, "m1")
    story.rest_missed(4_000, "m1: it rebalances")
    assert contradiction(story) is None


@pytest.mark.parametrize(("drift_us", "coherent"), [(-50_000, True), (50_000, True), (49_999, False)])
def test_under_a_clock_that_drifted_more_is_open(drift_us: int, *, coherent: bool) -> None:
    story = rested(wall_drift_us=drift_us, recorded=False)
    story.registers(2_052, "m2")
    story.rest(3_000)
    assert (contradiction(story) is None) is coherent


def test_without_the_settings_no_rest_can_be_told() -> None:
    story = rested(rebalance_backoff_ms=None)
    story.rest(1_001)
    assert contradiction(story) is None


# -- the period of work ---------------------------------------------------------------------------


def test_a_member_has_the_trial_s_period() -> None:
    story = rested(work_period_ms=1)
    assert contradiction(story) == "m1 reports work every 50 ms, but the trial's work_period_ms is 1"


def test_a_member_that_reports_no_period_contradicts_nothing() -> None:
    story = rested()
    story.started(2_000, "m2")
    assert contradiction(story) is None


def test_any_of_several_members_may_contradict() -> None:
    story = rested()
    story.comes(2_000, "m2", work_period_ms=49)
    assert contradiction(story) == "m2 reports work every 49 ms, but the trial's work_period_ms is 50"


# -- faults ---------------------------------------------------------------------------------------


def test_a_killed_process_records_nothing_more() -> None:
    story = rested()
    story.killed(2_000, "m1")
    story.worked("m1", 2_100)
    assert contradiction(story) == "kill of m1 (runner/0) stopped nothing: m1 recorded event 6 during it"


def test_one_that_is_dead_contradicts_nothing() -> None:
    story = rested()
    story.killed(2_000, "m1")
    story.member(2_000, "m1", Kind.WORKED, topic="t", partition=0)
    assert contradiction(story) is None


@pytest.mark.parametrize(
    ("actor", "ms", "contradicts"),
    [("m1", 2000, False), ("m1", 2000.001, True), ("m1", 7999, True), ("m1", 8000, False), ("m2", 5000, False)],
)
def test_a_node_that_is_cut_off_connects_to_no_server(actor: str, ms: float, *, contradicts: bool) -> None:
    """Docker needs a moment to take a network away, and to give it back."""
    story = Story(world="containers")
    story.started(0, "m1")
    began = story.fault(1000, "cut", "m1")
    story.add(ms, actor, Kind.CONNECTED, session="0x4")
    story.bit(9000, "cut", "m1", began)
    story.ended(9000, "cut", "m1", began)
    n = 1 if actor == "m1" else 0
    expected = (
        f"cut of m1 (runner/0) cut nothing off: {actor} connected during it ({actor}/{n})" if contradicts else None
    )
    assert incoherence(story.history()) == expected
