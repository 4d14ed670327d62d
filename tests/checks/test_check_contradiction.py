"""Contradiction (O7c): tiny histories, findings in full."""

from __future__ import annotations

from deal_story import deals, settled
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


def judge(story: GroupStory) -> Finding:
    story.elsewhere(9_000, up_to=13)  # the highest zxid that a decision of a test names
    story.rest(9_000)
    return CHECKS["contradiction"].judge(story.history())


def test_one_view_and_one_partition_for_two_is_violated() -> None:
    story = settled()
    first = deals(story, "m1", 2_000, 2_010, 2_050, wants=[0, 1])
    second = deals(story, "m2", 3_000, 3_010, 3_050, wants=[1], fails="conflict")
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 dealt from one view, and both want t/1",
        (first, second),
        {"count": 1, "views": 1},
    )


def test_what_none_of_them_wants_is_violated_once_all_have_dealt() -> None:
    story = settled()
    first = deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    second = deals(story, "m2", 2_020, 2_030, 2_060, wants=[])
    finding = judge(story)
    assert finding.why == "all 2 members dealt from one view, and none of them wants t/1"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, second))


def test_while_one_has_yet_to_deal_nothing_is_left_out() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    assert judge(story).outcome is Outcome.CLEAN


def test_partitions_that_came_after_the_view_are_not_missed() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, wants=[1])
    story.topic(2_040, "t", 3, Kind.CHANGED)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_contradiction_beside_a_decision_from_an_unknown_list_is_violated() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0, 1])
    deals(story, "m2", 3_000, 3_010, 3_050, wants=[1], fails="conflict")
    story.begins(3_090, "m2")
    story.member(3_100, "m2", Kind.DECIDED, detail={"members": 2, "view": "aa", "wants": []})
    story.ends(3_150, "m2")
    assert judge(story).outcome is Outcome.VIOLATED


def test_members_that_dealt_from_different_lists_do_not_contradict_each_other() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, wants=[0, 1])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1])
    assert judge(story).outcome is Outcome.CLEAN
