"""Belief and registry overlap (O1, O2), and all three of other groups: tiny histories, findings in full."""

from __future__ import annotations

import pytest
from history_story import Story
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.overlaps import Overlap, overlaps
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.intervals import Interval

NONE = {"count": 0, "longest_us": 0, "total_us": 0}


def judge(check: str, story: Story) -> Finding:
    return CHECKS[check].judge(story.history())


# -- belief -----------------------------------------------------------------------------------


def test_two_believers_are_violated_with_three_witnesses() -> None:
    story = Story()
    story.owned(10, "m1")
    story.owned(30, "m2")
    story.disowned(45, "m1")
    story.rest(60)
    assert judge("belief_overlap", story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 both believed for 0.015 s that they owned t/0",
        (("m1", 0), ("m2", 0), ("m1", 1)),
        {"count": 1, "longest_us": 15_000, "total_us": 15_000},
    )


def test_two_processes_of_one_name_are_two_believers() -> None:
    story = Story()
    story.owned(10, "m1")
    story.add(30, "m2", Kind.OWNED, member="g_m1", topic="t", partition=0)
    story.add(40, "m2", Kind.DISOWNED, member="g_m1", topic="t", partition=0)
    story.rest(60)
    assert judge("belief_overlap", story) == Finding(
        Outcome.VIOLATED,
        "m1 and m2, each as g_m1, both believed for 0.010 s that they owned t/0",
        (("m1", 0), ("m2", 0), ("m2", 1)),
        {"count": 1, "longest_us": 10_000, "total_us": 10_000},
    )


def test_an_overlap_that_outlives_the_history_has_two_witnesses() -> None:
    story = Story()
    story.owned(10, "m1")
    story.owned(30, "m2")
    story.rest(60)
    finding = judge("belief_overlap", story)
    assert finding.witness == (("m1", 0), ("m2", 0))
    assert finding.measures == {"count": 1, "longest_us": 30_000, "total_us": 30_000}


def test_the_witness_ends_with_the_belief_that_ended_first() -> None:
    story = Story()
    story.owned(10, "m1")
    story.owned(30, "m2")
    story.disowned(40, "m2")
    story.disowned(50, "m1")
    assert judge("belief_overlap", story).witness == (("m1", 0), ("m2", 0), ("m2", 1))


def test_a_hand_over_at_one_instant_is_no_belief_overlap() -> None:
    story = Story()
    story.owned(10, "m1")
    story.disowned(30, "m1")
    story.owned(30, "m2")
    story.rest(60)
    assert judge("belief_overlap", story) == Finding(
        Outcome.CLEAN, "no two members believed at the same time that they owned the same partition", (), NONE
    )


def test_a_belief_of_no_length_overlaps_nothing() -> None:
    story = Story()
    story.owned(10, "m1")
    story.owned(20, "m2")
    story.disowned(20, "m2")
    story.rest(60)
    assert judge("belief_overlap", story).outcome is Outcome.CLEAN


def test_other_partitions_and_the_same_member_are_no_overlap() -> None:
    story = Story()
    story.owned(10, "m1", 0)
    story.owned(10, "m2", 1)
    story.disowned(20, "m1", 0)
    story.owned(30, "m1", 0)
    story.rest(60)
    assert judge("belief_overlap", story).outcome is Outcome.CLEAN


def test_a_killed_member_s_successor_is_no_overlap() -> None:
    story = Story()
    story.owned(10, "m1")
    story.killed(20, "m1")
    story.owned(20, "m2")
    story.rest(60)
    assert judge("belief_overlap", story).outcome is Outcome.CLEAN


def test_a_paused_member_s_successor_is_an_overlap() -> None:
    story = Story()
    story.owned(10, "m1")
    story.paused(20, 50, "m1")
    story.owned(40, "m2")
    story.disowned(55, "m1")
    story.rest(60)
    finding = judge("belief_overlap", story)
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.VIOLATED, 15_000)


def test_the_longest_overlap_is_told_and_all_are_counted() -> None:
    story = Story()
    story.owned(0, "m1", 0)
    story.owned(0, "m1", 1)
    story.owned(90, "m2", 0)
    story.owned(50, "m2", 1)
    story.disowned(100, "m1", 0)
    story.disowned(100, "m1", 1)
    finding = judge("belief_overlap", story)
    assert finding.witness == (("m1", 1), ("m2", 1), ("m1", 3))
    assert finding.measures == {"count": 2, "longest_us": 50_000, "total_us": 60_000}


def test_an_instant_with_three_believers_counts_once_in_the_total() -> None:
    story = Story()
    for actor in ("m1", "m2", "m3"):
        story.owned(10, actor)
    story.disowned(20, "m1")
    story.rest(30)
    assert judge("belief_overlap", story).measures == {"count": 3, "longest_us": 20_000, "total_us": 20_000}


def test_a_history_without_belief_is_unknown() -> None:
    story = Story()
    story.rest(30)
    assert judge("belief_overlap", story) == Finding(
        Outcome.UNKNOWN, "no member ever believed that it owned a partition", (), NONE
    )


# -- registry ---------------------------------------------------------------------------------


def test_an_owner_created_over_another_is_violated() -> None:
    story = Story()
    story.created(10, "m1")
    story.created(30, "m2")
    story.deleted(40, "m2")
    story.rest(60)
    assert judge("registry_overlap", story) == Finding(
        Outcome.VIOLATED,
        "g_m2 became owner of t/0 while g_m1 owned it: ZooKeeper cannot do that, so the recorder lost an event",
        (("zookeeper", 0), ("zookeeper", 1)),
        {"count": 1, "longest_us": 10_000, "total_us": 10_000},
    )


def test_a_hand_over_through_a_delete_is_clean() -> None:
    story = Story()
    story.created(10, "m1")
    story.deleted(30, "m1")
    story.created(30, "m2")
    story.rest(60)
    assert judge("registry_overlap", story) == Finding(
        Outcome.CLEAN, "each partition had at most one owner at any zxid", (), NONE
    )


def test_a_change_of_owner_in_place_is_clean() -> None:
    story = Story()
    story.created(10, "m1")
    story.changed(30, "m2")
    story.rest(60)
    assert judge("registry_overlap", story).outcome is Outcome.CLEAN


def test_zxid_decides_where_time_seems_to_overlap() -> None:
    story = Story()
    story.created(10, "m1", zxid=1)
    story.created(29, "m2", zxid=3)  # by the clock one ms before m1's delete
    story.deleted(30, "m1", zxid=2)
    story.rest(60)
    assert judge("registry_overlap", story).outcome is Outcome.CLEAN


def test_zxid_decides_where_time_seems_not_to_overlap() -> None:
    story = Story()
    story.created(10, "m1", zxid=1)
    story.deleted(20, "m1", zxid=3)
    story.created(30, "m2", zxid=2)
    story.rest(60)
    finding = judge("registry_overlap", story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 2)))
    assert finding.measures == {"count": 1, "longest_us": 0, "total_us": 0}


def test_a_delete_and_create_in_one_multi_are_in_log_order() -> None:
    story = Story()
    story.created(10, "m1", zxid=1)
    story.deleted(20, "m1", zxid=2)
    story.created(20, "m2", zxid=2)
    story.rest(60)
    assert judge("registry_overlap", story).outcome is Outcome.CLEAN


def test_a_member_that_re_creates_its_own_owner_is_no_overlap() -> None:
    story = Story()
    story.created(10, "m1")
    story.created(20, "m1")
    story.rest(60)
    assert judge("registry_overlap", story).outcome is Outcome.CLEAN


def test_a_history_without_owners_is_unknown() -> None:
    story = Story()
    story.rest(30)
    assert judge("registry_overlap", story) == Finding(Outcome.UNKNOWN, "the registry never held an owner", (), NONE)


def test_two_intervals_of_one_member_are_no_overlap() -> None:
    one = Interval(Layer.EFFECT, "g_m1", "g", "t", 0, 0, 10, ("m1", 0), ("m1", 1))
    assert overlaps([one, one], closed=True) == []
    other = Interval(Layer.EFFECT, "g_m2", "g", "t", 0, 10, 10, ("m2", 0), ("m2", 0))
    assert overlaps([other, one], closed=True) == [Overlap(one, other)]
    assert overlaps([other, one], closed=False) == []


# -- against a plain count ----------------------------------------------------------------------

_STRETCHES = st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), st.integers(0, 9), st.integers(1, 9)), max_size=7)


@given(_STRETCHES)
def test_total_is_the_time_in_which_two_or_more_believed(stretches: list[tuple[str, int, int]]) -> None:
    believers: list[set[str]] = [set() for _ in range(20)]
    for actor, begin, length in stretches:
        for at in range(begin, begin + length):
            believers[at].add(actor)
    story = Story()
    for at in range(20):
        for actor in ("m1", "m2", "m3"):
            before = at > 0 and actor in believers[at - 1]
            if before and actor not in believers[at]:
                story.disowned(at, actor)
            elif actor in believers[at] and not before:
                story.owned(at, actor)
    finding = judge("belief_overlap", story)
    assert finding.measures["total_us"] == 1000 * sum(len(here) > 1 for here in believers)
    assert (finding.outcome is Outcome.VIOLATED) == any(len(here) > 1 for here in believers)


@pytest.mark.parametrize(("group", "outcome"), [("g", Outcome.VIOLATED), ("h", Outcome.CLEAN)])
@pytest.mark.parametrize("check", ["belief_overlap", "effect_overlap", "registry_overlap"])
def test_only_members_of_one_group_overlap(check: str, group: str, outcome: Outcome) -> None:
    story = Story()
    for actor, its_group in (("m1", "g"), ("m2", group)):
        story.owned(10, actor, group=its_group)
        for ms in (10, 60):
            story.member(ms, actor, Kind.WORKED, topic="t", partition=0, group=its_group)
        story.created(10, actor, group=its_group)
    story.rest(90)
    assert judge(check, story).outcome is outcome
