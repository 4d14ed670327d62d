"""Disagreement (O7): where it looks, and doubts. Different views: `test_check_disagreement_views`."""

from __future__ import annotations

from deal_story import NONE, deals, judge, settled
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

# -- where it looks, and doubts -----------------------------------------------------------------


def test_the_assembling_and_the_end_are_not_judged() -> None:
    story = GroupStory()
    story.topic(0, "t", 2)
    for actor in ("m1", "m2"):
        story.joins(10, actor)
    deals(story, "m1", 100, 110, 150, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 120, 130, 160, zxid=11, view="bb", wants=[1])
    story.rest(1_000)
    story.phase(2_000, "closing")
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=12, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=13, view="bb", wants=[1])
    assert judge(story) == Finding(Outcome.CLEAN, judge(story).why, (), NONE)


def test_a_group_that_never_rested_is_unknown() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    deals(story, "m1", 100, 110, 150)
    story.elsewhere(200, up_to=10)
    finding = CHECKS["disagreement"].judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "the group never came to rest; the group never came to rest, so no change was looked at"


def test_a_fault_that_did_not_bite_leaves_it_open() -> None:
    story = settled()
    story.fault(1_500, "lag", "z1")
    assert judge(story).outcome is Outcome.UNKNOWN


def test_members_that_tell_no_decision_are_not_looked_at() -> None:
    story = settled()
    assert not CHECKS["disagreement"].applies(story.history())
    deals(story, "m1", 2_000, 2_010, 2_050)
    assert CHECKS["disagreement"].applies(story.history())


def test_a_decision_from_an_unknown_list_convicts_nobody_and_leaves_nothing_clean() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    story.begins(2_000, "m2")
    story.member(2_020, "m2", Kind.DECIDED, detail={"members": 1, "view": "bb", "wants": [["t", 0], ["t", 1]]})
    story.meets(2_050, "m2", [0])
    finding = judge(story)
    assert (finding.outcome, finding.measures["views_apart"]) == (Outcome.UNKNOWN, 0)
    assert finding.why == "1 decisions do not record which list of members they were made from"
