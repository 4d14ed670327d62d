"""Effect overlap (O1e): tiny histories, findings in full."""

from __future__ import annotations

from typing import Any

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

NONE = {"count": 0, "longest_us": 0, "total_us": 0}


def judge(check: str, story: Story) -> Finding:
    return CHECKS[check].judge(story.history())


def test_a_zombie_s_work_between_its_successor_s_reports_is_violated() -> None:
    story = Story()
    story.worked("m2", 0, 50, 100)
    story.worked("m1", 70, 120)
    story.rest(200)
    assert judge("effect_overlap", story) == Finding(
        Outcome.VIOLATED,
        "g_m2 and g_m1 both worked on t/0 for 0.030 s",
        (("m2", 1), ("m1", 0), ("m2", 2)),
        {"count": 1, "longest_us": 30_000, "total_us": 30_000},
    )


def test_runs_that_share_an_instant_overlap_with_no_length() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.worked("m2", 50, 100)
    story.rest(200)
    assert judge("effect_overlap", story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 both worked on t/0 for under 1 µs",
        (("m1", 1), ("m2", 0)),
        {"count": 1, "longest_us": 0, "total_us": 0},
    )


@pytest.mark.parametrize(("last", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)])
def test_a_run_that_ends_with_a_stop_hands_over_at_that_instant(last: bool, outcome: Outcome) -> None:
    story = Story()
    story.worked("m1", 0)
    story.worked("m1", 50, last=last)
    story.worked("m2", 50, 100)
    story.rest(200)
    assert judge("effect_overlap", story).outcome is outcome


def test_a_stop_inside_another_s_run_overlaps() -> None:
    story = Story()
    story.worked("m2", 0, 50, 100)
    story.worked("m1", 20, 70)
    story.worked("m1", 80, last=True)
    story.rest(200)
    assert judge("effect_overlap", story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("period_ms", "times", "outcome"),
    [
        (50, [30], Outcome.UNKNOWN),
        (50, [30, 30], Outcome.UNKNOWN),
        (50, [30, 50, 77.999], Outcome.UNKNOWN),
        (50, [30, 78], Outcome.VIOLATED),
        (2, [30], Outcome.UNKNOWN),
        (2, [30, 30.001], Outcome.VIOLATED),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_reports_of_less_than_a_period_may_be_late(
    told: bool, period_ms: int, times: list[float], outcome: Outcome
) -> None:
    """m2 writes down beside its successor what it did before; the report at its stop counts for nothing."""
    settings: dict[str, Any] = {} if told else {"work_period_ms": period_ms}
    story = Story(**settings)
    detail: dict[str, object] = {"work_period_ms": period_ms} if told else {}
    story.add(0, "m2", Kind.MEMBER_STARTED, member="g_m2", detail=detail)
    story.add(0, "m1", Kind.MEMBER_STARTED, member="g_m1", detail={"work_period_ms": 50})
    story.worked("m1", 0, 50, 100)
    story.worked("m2", *times)
    story.worked("m2", times[-1] + 1, last=True)
    story.rest(200)
    finding = judge("effect_overlap", story)
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        doubt = "g_m2 reported work on t/0 for less than a work period"
        doubt += " beside another member's work: the reports may be late"
        assert (finding.why.split("; ")[-1], finding.measures) == (doubt, NONE)


def test_the_first_of_two_runs_may_be_the_late_one() -> None:
    story = Story()
    story.worked("m1", 0, 40)
    story.worked("m2", 30, 80)
    story.rest(200)
    assert judge("effect_overlap", story).why.startswith("g_m1 reported work on t/0 for less than a work period")


def test_beside_an_overlap_of_work_a_late_report_is_left_out() -> None:
    story = Story()
    story.worked("m1", 0, 50, 100, 150, 200)
    story.worked("m2", 10)
    story.worked("m3", 120, 170)
    story.rest(300)
    finding = judge("effect_overlap", story)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 1)
    assert finding.why == "g_m1 and g_m3 both worked on t/0 for 0.050 s"


def test_a_report_in_a_gap_just_above_two_periods_does_not_overlap() -> None:
    story = Story()
    story.worked("m1", 0, 100.001)
    story.worked("m2", 99)
    story.rest(200)
    assert judge("effect_overlap", story) == Finding(
        Outcome.CLEAN, "no two members worked on the same partition at the same time", (), NONE
    )


def test_the_trial_s_own_period_bounds_a_run() -> None:
    story = Story(work_period_ms=10)
    story.worked("m1", 0, 21)
    story.worked("m2", 20)
    story.rest(200)
    assert judge("effect_overlap", story).outcome is Outcome.CLEAN


def test_work_during_another_s_pause_does_not_overlap_before_it_wakes() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.paused(60, 99, "m1")
    story.worked("m2", 80)
    story.worked("m1", 100)
    story.rest(200)
    assert judge("effect_overlap", story).outcome is Outcome.CLEAN


def test_effect_may_outlive_belief() -> None:
    story = Story()
    story.owned(0, "m1")
    story.worked("m1", 0, 50)
    story.disowned(10, "m1")
    story.owned(20, "m2")
    story.worked("m2", 20, 70)
    story.rest(200)
    assert judge("belief_overlap", story).outcome is Outcome.CLEAN
    assert judge("effect_overlap", story).witness == (("m1", 1), ("m2", 1), ("m1", 2))


def test_a_history_without_effect_is_unknown() -> None:
    story = Story()
    story.rest(30)
    assert judge("effect_overlap", story) == Finding(Outcome.UNKNOWN, "no member ever worked on a partition", (), NONE)


def test_two_processes_of_one_name_are_two_workers() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    for ms in (50, 100):
        story.add(ms, "m2", Kind.WORKED, member="g_m1", topic="t", partition=0)
    story.rest(200)
    finding = judge("effect_overlap", story)
    assert finding.why == "m1 and m2, each as g_m1, both worked on t/0 for under 1 µs"
    assert finding.witness == (("m1", 1), ("m2", 0))
