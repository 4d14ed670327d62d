"""Contradiction (O7c): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from deal_story import deals, settled
from group_story import GroupStory, pairs

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

CHECK = CHECKS["contradiction"]


def judge(story: GroupStory) -> Finding:
    story.elsewhere(9_000, up_to=13)  # the highest zxid that a decision of a test names
    story.rest(9_000)
    return CHECK.judge(story.history())


def test_one_view_and_one_partition_for_two_is_violated() -> None:
    story = settled()
    first = deals(story, "m1", 2_000, 2_010, 2_050, wants=[0, 1])
    second = deals(story, "m2", 3_000, 3_010, 3_050, wants=[1], fails="conflict")
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 decided from the same view, and both want t/1",
        (first, second),
        {"count": 1, "views": 1},
    )


def test_what_none_of_them_wants_is_violated_once_all_have_dealt() -> None:
    story = settled()
    first = deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    second = deals(story, "m2", 2_020, 2_030, 2_060, wants=[])
    finding = judge(story)
    assert finding.why == "all 2 members decided from the same view, and none of them wants t/1"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (first, second))


def test_shares_that_fit_together_are_clean() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, wants=[1])
    why = "members that decided from the same view computed assignments that fit together"
    assert judge(story) == Finding(Outcome.CLEAN, why, (), {"count": 0, "views": 1})


def test_one_member_alone_may_leave_something_out() -> None:
    story = settled(members=1)
    deals(story, "m1", 2_000, 2_010, 2_050, members=1, wants=[0])
    finding = judge(story)
    assert finding.why == "all 1 members decided from the same view, and none of them wants t/1"


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


@pytest.mark.parametrize(("changed_ms", "outcome"), [(1_997.999, Outcome.VIOLATED), (1_998, Outcome.CLEAN)])
def test_partitions_that_came_within_2_ms_of_the_first_attempt_are_not_missed(
    changed_ms: float, outcome: Outcome
) -> None:
    story = settled()
    story.topic(changed_ms, "t", 3, Kind.CHANGED)
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, wants=[1])
    assert judge(story).outcome is outcome


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


# -- doubts -------------------------------------------------------------------------------------


def test_a_decision_from_an_unknown_list_leaves_it_open() -> None:
    story = settled()
    story.begins(2_000, "m2")
    story.member(2_010, "m2", Kind.DECIDED, detail={"members": 2, "view": "aa", "wants": []})
    story.ends(2_050, "m2")
    finding = judge(story)
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, {"count": 0, "views": 0})
    assert finding.why == "1 decisions do not record which list of members they were made from"


def test_a_group_that_never_rested_is_unknown() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    deals(story, "m1", 10, 20, 30, members=1)
    story.rest_missed(9_000, "m1: it rebalances")
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.endswith("the group never came to rest, so no change was looked at")


def test_without_a_decision_it_does_not_apply() -> None:
    story = settled()
    story.begins(2_000, "m1")
    story.ends(2_010, "m1")
    assert not CHECK.applies(story.history())
    deals(story, "m1", 2_100, 2_110, 2_150, wants=[0])
    assert CHECK.applies(story.history())


def test_an_earlier_deal_from_the_same_view_counts_too() -> None:
    story = settled()
    wrong = deals(story, "m2", 2_000, 2_010, 2_050, wants=[0], fails="conflict")
    deals(story, "m2", 2_500, 2_510, 2_550, wants=[1])
    first = deals(story, "m1", 3_000, 3_010, 3_050, wants=[0])
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (wrong, first))


def test_a_member_may_deal_twice_from_one_view() -> None:
    story = settled()
    deals(story, "m2", 2_000, 2_010, 2_050, wants=[1], fails="conflict")
    deals(story, "m2", 2_500, 2_510, 2_550, wants=[1])
    deals(story, "m1", 3_000, 3_010, 3_050, wants=[0])
    assert judge(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("left", "outcome"), [(0, Outcome.CLEAN), (1, Outcome.VIOLATED)])
def test_nothing_is_left_out_of_what_they_read(left: int, outcome: Outcome) -> None:
    """They read topic t before it had a third partition. `left`: how many of the other two nobody wants."""
    story = settled()
    story.topic(1_500, "t", 3, Kind.CHANGED)  # zxid 6
    for actor, wants in (("m1", [0]), ("m2", [1][left:])):
        story.begins(2_000, actor)
        story.asks(2_001, actor, "get", "/brokers/topics/t", zxid=5)
        story.asks(2_002, actor, "children", "/consumers/g/ids", zxid=6)
        detail = {"members_zxid": 4, "wants": pairs(wants)}
        story.member(2_010, actor, Kind.DECIDED, detail=detail)
        story.ends(2_050, actor)
    finding = judge(story)
    assert (finding.outcome, finding.measures) == (outcome, {"count": left, "views": 1})
    if left:
        assert finding.why == "all 2 members decided from the same view, and none of them wants t/1"
