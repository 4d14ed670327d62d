"""Ownership intervals, layer by layer."""

from __future__ import annotations

import itertools

import pytest
from history_story import Story
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import HistoryError
from rebalance_lab.history.intervals import (
    Interval,
    belief_intervals,
    effect_intervals,
    ownership_intervals,
    registry_intervals,
)


def belief(story: Story) -> list[tuple[str, int, float, float]]:
    return short(belief_intervals(story.history().events))


def registry(story: Story) -> list[tuple[str, int, float, float]]:
    return short(registry_intervals(story.history().events))


def effect(story: Story) -> list[tuple[str, int, float, float]]:
    return short(effect_intervals(story.history().events, work_period_ms=50))


def short(intervals: list[Interval]) -> list[tuple[str, int, float, float]]:
    return [(one.member, one.partition, one.begin_us / 1000, one.end_us / 1000) for one in intervals]


# -- belief -----------------------------------------------------------------------------------


def test_belief_is_from_owned_to_disowned_with_the_ids_of_both() -> None:
    story = Story()
    story.owned(10, "m1")
    story.disowned(30, "m1")
    assert belief_intervals(story.history().events) == [
        Interval(Layer.BELIEF, "g_m1", "g", "t", 0, 10_000, 30_000, ("m1", 0), ("m1", 1))
    ]


def test_belief_that_never_ends_reaches_to_the_last_event() -> None:
    story = Story()
    story.owned(10, "m1")
    story.rest(90)
    assert belief_intervals(story.history().events) == [
        Interval(Layer.BELIEF, "g_m1", "g", "t", 0, 10_000, 90_000, ("m1", 0), None)
    ]


def test_the_same_member_may_claim_again() -> None:
    story = Story()
    story.owned(10, "m1")
    story.disowned(20, "m1")
    story.owned(30, "m1")
    story.disowned(40, "m1")
    assert belief(story) == [("g_m1", 0, 10, 20), ("g_m1", 0, 30, 40)]


def test_owning_twice_and_disowning_nothing_change_nothing() -> None:
    story = Story()
    story.disowned(5, "m1")
    story.owned(10, "m1")
    story.owned(20, "m1")
    story.disowned(30, "m1")
    story.disowned(35, "m1")
    assert belief(story) == [("g_m1", 0, 10, 30)]


def test_a_kill_ends_the_belief_of_its_target_only() -> None:
    story = Story()
    story.owned(10, "m1", 0)
    story.owned(10, "m2", 1)
    kill = story.killed(50, "m1")
    story.disowned(60, "m2", 1)
    first, second = belief_intervals(story.history().events)
    assert (first.end_us, first.end) == (50_000, kill)
    assert (second.end_us, second.end) == (60_000, ("m2", 1))


def test_what_an_actor_wrote_after_its_kill_began_counts_for_nothing() -> None:
    story = Story()
    story.killed(50, "m1")
    story.owned(50.1, "m1")
    story.worked("m1", 50.1)
    story.rest(90)
    assert belief(story) == []
    assert effect(story) == []


def test_a_pause_ends_no_belief() -> None:
    story = Story()
    story.owned(10, "m1")
    story.paused(20, 80, "m1")
    story.disowned(90, "m1")
    assert belief(story) == [("g_m1", 0, 10, 90)]


def test_a_closed_member_believes_nothing() -> None:
    story = Story()
    story.owned(10, "m1", 0)
    story.owned(10, "m1", 1)
    story.owned(10, "m2", 2)
    closed = story.closed(40, "m1")
    story.rest(50)
    intervals = belief_intervals(story.history().events)
    assert [(one.member, one.end_us, one.end) for one in intervals] == [
        ("g_m1", 40_000, closed),
        ("g_m1", 40_000, closed),
        ("g_m2", 50_000, None),
    ]


def test_two_processes_of_one_name_believe_for_themselves() -> None:
    story = Story()
    story.owned(10, "m1")
    story.add(20, "m2", Kind.OWNED, member="g_m1", topic="t", partition=0)
    story.closed(30, "m1")
    story.add(50, "m2", Kind.DISOWNED, member="g_m1", topic="t", partition=0)
    found = belief_intervals(story.history().events)
    assert [(one.actor, one.begin_us, one.end_us) for one in found] == [("m1", 10_000, 30_000), ("m2", 20_000, 50_000)]


def test_a_belief_without_partition_is_no_history_of_this_lab() -> None:
    story = Story()
    story.member(10, "m1", Kind.OWNED, topic="t")
    with pytest.raises(HistoryError, match=r"\('m1', 0\) \(owned, at 10000 us\) must name member, topic and partition"):
        belief(story)


# -- effect -----------------------------------------------------------------------------------


def test_a_run_is_from_its_first_report_to_its_last() -> None:
    story = Story()
    story.worked("m1", 0, 50, 100)
    assert effect_intervals(story.history().events, work_period_ms=50) == [
        Interval(Layer.EFFECT, "g_m1", "g", "t", 0, 0, 100_000, ("m1", 0), ("m1", 2))
    ]


def test_a_single_report_is_a_run_of_no_length() -> None:
    story = Story()
    story.worked("m1", 70)
    assert effect(story) == [("g_m1", 0, 70, 70)]


def test_reports_exactly_two_periods_apart_are_one_run() -> None:
    story = Story()
    story.worked("m1", 0, 100)
    assert effect(story) == [("g_m1", 0, 0, 100)]


def test_reports_just_above_two_periods_apart_are_two_runs() -> None:
    story = Story()
    story.worked("m1", 0, 100.001)
    assert effect(story) == [("g_m1", 0, 0, 0), ("g_m1", 0, 100.001, 100.001)]


def test_the_period_is_the_trial_s() -> None:
    story = Story(work_period_ms=10)
    story.worked("m1", 0, 20, 41)
    assert short(ownership_intervals(story.history())) == [("g_m1", 0, 0, 20), ("g_m1", 0, 41, 41)]


def test_a_member_s_own_period_comes_before_the_trial_s() -> None:
    story = Story(work_period_ms=1)
    story.member(0, "m1", Kind.MEMBER_STARTED, detail={"work_period_ms": 10})
    story.started(0, "m2")
    for actor in ("m1", "m2"):
        story.worked(actor, 0, 20, 41)
    own = [("g_m1", 0, 0, 20), ("g_m1", 0, 41, 41)]
    found = short(ownership_intervals(story.history()))
    assert [run for run in found if run[0] == "g_m1"] == own
    assert [run for run in found if run[0] == "g_m2"] == [("g_m2", 0, ms, ms) for ms in (0, 20, 41)]


def test_partitions_and_members_have_runs_of_their_own() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.worked("m1", 20, partition=1)
    story.worked("m2", 100)
    assert effect(story) == [("g_m1", 0, 0, 50), ("g_m2", 0, 100, 100), ("g_m1", 1, 20, 20)]


def stops(story: Story, ms: float) -> None:
    story.member(ms, "m1", Kind.WORKED, topic="t", partition=0, detail={"last": True})


def test_a_report_at_a_stop_ends_its_run() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    stops(story, 150)
    story.worked("m1", 160)
    assert effect(story) == [("g_m1", 0, 0, 150), ("g_m1", 0, 160, 160)]


@pytest.mark.parametrize("stop_ms", [150.001, 5_000])
def test_a_report_at_a_stop_begins_no_run(stop_ms: float) -> None:
    story = Story()
    story.worked("m1", 0, 50)
    stops(story, stop_ms)
    stops(story, stop_ms + 10)
    assert effect(story) == [("g_m1", 0, 0, 50)]


def test_who_only_stops_after_a_pause_has_not_worked() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.paused(60, 80, "m1")
    stops(story, 90)
    assert effect(story) == [("g_m1", 0, 0, 50)]


def test_a_run_does_not_reach_from_one_claim_to_the_next() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.worked("m1", 0, 50, partition=1)
    story.disowned(60, "m1")
    story.owned(70, "m1")
    story.worked("m1", 90)
    story.worked("m1", 90, partition=1)
    assert effect(story) == [("g_m1", 0, 0, 50), ("g_m1", 0, 90, 90), ("g_m1", 1, 0, 90)]


@pytest.mark.parametrize("last", [False, True])
def test_who_works_after_it_disowned_has_not_stopped(last: bool) -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.disowned(60, "m1")
    if last:
        stops(story, 80)
    else:
        story.worked("m1", 80)
    story.owned(90, "m1")
    story.worked("m1", 100)
    assert effect(story) == ([("g_m1", 0, 0, 80), ("g_m1", 0, 100, 100)] if last else [("g_m1", 0, 0, 100)])


def test_owned_without_disowned_cuts_nothing() -> None:
    story = Story()
    story.owned(-10, "m1")
    story.worked("m1", 0, 50)
    story.owned(60, "m1")
    story.disowned(70, "m2")
    story.owned(80, "m2")
    story.worked("m1", 100)
    assert effect(story) == [("g_m1", 0, 0, 100)]


def test_a_pause_cuts_a_run_however_short_it_was() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.worked("m2", 0, 50, 100, partition=1)
    story.paused(60, 80, "m1")
    story.worked("m1", 90)
    assert effect(story) == [("g_m1", 0, 0, 50), ("g_m1", 0, 90, 90), ("g_m2", 1, 0, 100)]


def test_a_report_inside_a_pause_counts_as_a_run_of_its_own() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.paused(50.2, 80, "m1")
    story.worked("m1", 50.3, 90)
    assert effect(story) == [("g_m1", 0, 0, 50), ("g_m1", 0, 50.3, 50.3), ("g_m1", 0, 90, 90)]


def test_a_kill_ends_the_effect() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.killed(60, "m1")
    assert effect(story) == [("g_m1", 0, 0, 50)]


def test_a_leave_cuts_nothing() -> None:
    story = Story()
    story.worked("m1", 0, 50)
    story.fault(60, "leave", "m1")
    story.worked("m1", 90)
    assert effect(story) == [("g_m1", 0, 0, 90)]


# -- registry ---------------------------------------------------------------------------------


def test_registry_is_from_created_to_deleted() -> None:
    story = Story()
    story.created(10, "m1")
    story.deleted(30, "m1")
    assert registry_intervals(story.history().events) == [
        Interval(Layer.REGISTRY, "g_m1", "g", "t", 0, 10_000, 30_000, ("zookeeper", 0), ("zookeeper", 1))
    ]


def test_znodes_that_own_nothing_are_no_intervals() -> None:
    story = Story()
    story.created_id(10, "m1", "0x1")
    story.registry(11, Kind.CREATED, "/consumers/g/offsets/t/0", "0x1", topic="t", partition=0)
    story.rest(20)
    assert registry(story) == []


def test_a_change_to_another_member_splits() -> None:
    story = Story()
    story.created(10, "m1")
    story.changed(20, "m1")
    story.changed(30, "m2")
    story.deleted(40, "m2")
    assert registry(story) == [("g_m1", 0, 10, 30), ("g_m2", 0, 30, 40)]


def test_a_change_ends_nothing_on_other_partitions() -> None:
    story = Story()
    story.created(10, "m1", 0)
    story.created(10, "m1", 1)
    story.changed(30, "m2", 0)
    story.rest(40)
    assert registry(story) == [("g_m1", 0, 10, 30), ("g_m2", 0, 30, 40), ("g_m1", 1, 10, 40)]


def test_zxid_orders_the_registry_though_its_clock_stepped_back() -> None:
    story = Story()
    story.created(10, "m1")
    story.deleted(8, "m1")  # a later zxid at an earlier time
    story.created(9, "m2")
    story.deleted(20, "m2")
    assert registry(story) == [("g_m2", 0, 9, 20), ("g_m1", 0, 10, 10)]


def test_a_registry_event_without_zxid_cannot_be_ordered() -> None:
    story = Story()
    story.add(10, "zookeeper", Kind.CREATED, member="g_m1", topic="t", partition=0)
    with pytest.raises(HistoryError, match=r"\('zookeeper', 0\) \(created\) has no zxid"):
        registry(story)


def test_all_layers_come_in_one_list() -> None:
    story = Story()
    story.worked("m1", 20)
    story.owned(15, "m1")
    story.created(10, "m1")
    assert [one.layer for one in ownership_intervals(story.history())] == [Layer.BELIEF, Layer.EFFECT, Layer.REGISTRY]


def test_an_empty_history_has_no_intervals() -> None:
    assert ownership_intervals(Story().history()) == []


# -- against a plain reading of the definitions --------------------------------------------------

_STEPS = st.lists(
    st.tuples(st.sampled_from(["m1", "m2"]), st.sampled_from(["owned", "disowned", "closed"])), max_size=14
)


@given(_STEPS)
def test_belief_intervals_cover_exactly_the_instants_of_belief(steps: list[tuple[str, str]]) -> None:
    story = Story()
    for at, (actor, what) in enumerate(steps):
        getattr(story, what)(at, actor)
    story.rest(len(steps))
    intervals = belief_intervals(story.history().events)
    for actor in ("m1", "m2"):
        believes = False
        for at, step in enumerate(steps):
            if step[0] == actor:
                believes = step[1] == "owned"
            covered = [
                one for one in intervals if one.member == f"g_{actor}" and one.begin_us <= at * 1000 < one.end_us
            ]
            assert len(covered) == believes


@given(st.lists(st.integers(0, 400), max_size=12, unique=True).map(sorted))
def test_effect_runs_keep_every_report_and_break_only_at_gaps(times_ms: list[int]) -> None:
    story = Story()
    story.worked("m1", *times_ms)
    runs = effect(story)
    gaps = [later - earlier for earlier, later in itertools.pairwise(times_ms)]
    assert len(runs) == (1 + sum(gap > 100 for gap in gaps) if times_ms else 0)
    assert all(any(begin <= at <= end for _, _, begin, end in runs) for at in times_ms)
