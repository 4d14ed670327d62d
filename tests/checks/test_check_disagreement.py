"""Disagreement (O7): tiny histories, findings in full."""

from __future__ import annotations

from group_story import GroupStory, Wants, pairs

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

NONE = {
    "count": 0,
    "views_apart": 0,
    "contradictions": 0,
    "rounds": 0,
    "longest_us": 0,
    "unowned": 0,
    "wrong_claims": 0,
    "conflicts": 0,
    "nothing": 0,
}


def judge(story: GroupStory, end_ms: float = 9_000) -> Finding:
    story.rest(end_ms)
    return CHECKS["disagreement"].judge(story.history())


def settled(members: int = 2, partitions: int = 2, **streams: dict[str, int]) -> GroupStory:
    """m1, m2, … own a partition each, and the group rests at 1 s. `streams`: by actor."""
    story = GroupStory()
    story.topic(0, "t", partitions)
    for number in range(1, members + 1):
        actor = f"m{number}"
        story.joins(10 * number, actor, streams=streams.get(actor, {"t": 1}))
        story.claims(10 * number + 5, actor, number - 1)
    story.rest(1_000)
    return story


def deals(
    story: GroupStory,
    actor: str,
    began_ms: float,
    decided_ms: float,
    ended_ms: float | None,
    *,
    zxid: int = 10,
    view: str = "aa",
    members: int = 2,
    wants: Wants = (),
    fails: str = "",
) -> EventId:
    """One rebalance of one attempt; returns its DECIDED. `fails`: the reason, if it does."""
    story.begins(began_ms, actor)
    detail = {"members": members, "members_zxid": zxid, "view": view, "wants": pairs(wants)}
    decided = story.member(decided_ms, actor, Kind.DECIDED, detail=detail)
    if ended_ms is not None:
        if fails:
            story.fails(ended_ms, actor, fails)
        else:
            story.ends(ended_ms, actor)
    return decided


# -- different views --------------------------------------------------------------------------


def test_two_that_deal_at_once_from_two_lists_are_violated() -> None:
    story = settled(3, 3)
    older = deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    newer = deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", members=3, wants=[1], fails="conflict")
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 dealt in one round from lists of 2 and 3 members; what followed: a wrong claim (1)",
        (older, newer),
        {**NONE, "count": 1, "views_apart": 1, "rounds": 1, "longest_us": 60_000, "wrong_claims": 1, "conflicts": 1},
    )


def test_from_one_list_they_are_clean() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, wants=[1])
    finding = judge(story)
    why = "members that dealt at once dealt from one view, and their shares fitted together"
    assert finding == Finding(Outcome.CLEAN, why, (), {**NONE, "rounds": 1})


def test_one_after_the_other_they_may_see_what_there_is_then() -> None:
    """The list has changed meanwhile: the second saw more."""
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_020, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_005, 2_020, 2_060, zxid=11, view="bb", wants=[1])
    assert judge(story).outcome is Outcome.CLEAN
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_021, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_005, 2_020, 2_060, zxid=11, view="bb", wants=[1])
    assert judge(story).outcome is Outcome.VIOLATED


def test_who_deals_from_an_older_list_than_somebody_had_is_violated_however_late() -> None:
    story = settled(3, 3)
    newer = deals(story, "m1", 2_000, 2_010, 2_020, zxid=11, view="bb", members=3, wants=[0])
    older = deals(story, "m2", 5_000, 5_010, 5_020, zxid=10, view="aa", members=2, wants=[1])
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (newer, older))
    assert (finding.measures["wrong_claims"], finding.measures["rounds"]) == (1, 2)


def test_a_member_alone_may_change_its_mind() -> None:
    """A server behind which it moved: its own two lists are in nobody's way."""
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_020, zxid=11, view="bb", wants=[0])
    deals(story, "m1", 3_000, 3_010, 3_020, zxid=10, view="aa", wants=[0])
    assert judge(story).outcome is Outcome.CLEAN


def test_a_paused_member_that_deals_when_it_wakes_disagrees_with_nobody() -> None:
    """Its attempt spans what others did meanwhile; its list is the newest when it deals."""
    story = settled()
    story.begins(2_000, "m1")
    deals(story, "m2", 3_000, 3_010, 3_020, zxid=11, view="bb", members=1, wants=[0, 1])
    detail = {"members": 2, "members_zxid": 12, "view": "cc", "wants": pairs([0])}
    story.member(6_000, "m1", Kind.DECIDED, detail=detail)
    story.ends(6_010, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_the_same_list_and_other_partitions_are_two_views() -> None:
    story = settled()
    one = deals(story, "m1", 2_000, 2_010, 2_050, view="aa", wants=[0])
    other = deals(story, "m2", 2_020, 2_030, 2_060, view="bb", wants=[1])
    finding = judge(story)
    assert finding.why == "g_m1 and g_m2 dealt in one round from different partitions; what followed: nothing"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (one, other))
    assert (finding.measures["nothing"], finding.measures["wrong_claims"]) == (1, 0)


def test_digests_over_different_topics_say_nothing() -> None:
    story = settled(m2={"u": 1})
    deals(story, "m1", 2_000, 2_010, 2_050, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, view="bb")
    assert judge(story).outcome is Outcome.CLEAN


def test_other_groups_are_no_business_of_one_another() -> None:
    story = settled()
    story.joins(40, "m3", group="h")
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, wants=[0])
    story.begins(2_020, "m3", group="h")
    detail = {"members": 1, "members_zxid": 99, "view": "hh", "wants": pairs([0, 1])}
    story.add(2_030, "m3", Kind.DECIDED, member="h_m3", group="h", detail=detail)
    story.ends(2_060, "m3", group="h")
    assert judge(story).outcome is Outcome.CLEAN


def test_what_an_older_list_leaves_unowned_is_told_first() -> None:
    story = settled(3, 3)
    story.releases(2_005, "m3", 2)
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1])
    finding = judge(story)
    assert finding.why.endswith("what followed: unowned partitions (1)")
    assert finding.measures["unowned"] == 1


def test_an_owner_that_comes_within_2_ms_of_the_end_is_in_doubt() -> None:
    for claimed_ms, unowned in ((2_062, 0), (2_063, 1)):
        story = settled(3, 3)
        story.releases(2_005, "m3", 2)
        deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
        deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1])
        story.claims(claimed_ms, "m2", 2)
        assert judge(story).measures["unowned"] == unowned


def test_what_is_kept_over_attempts_is_one_deal() -> None:
    """With keep.claims.on.conflict a later attempt goes on with the plan of an earlier one."""
    story = settled()
    story.begins(2_000, "m1")
    detail = {"members": 1, "members_zxid": 10, "view": "aa", "wants": pairs([0, 1])}
    older = story.member(2_010, "m1", Kind.DECIDED, detail=detail)
    failed = {"why": "w", "reason": "conflict", "conflicts": pairs([1]), "holds": pairs([0])}
    story.member(2_020, "m1", Kind.ATTEMPT_FAILED, detail=failed)
    newer = deals(story, "m2", 2_200, 2_210, 2_220, zxid=11, view="bb", wants=[1])
    story.attempts(2_500, "m1")
    story.ends(2_510, "m1", attempts=2)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (older, newer))


def test_an_attempt_that_a_shutdown_ended_dealt_for_nothing() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0], fails="shutdown")
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1])
    assert judge(story).outcome is Outcome.CLEAN


# -- contradictions ---------------------------------------------------------------------------


def test_one_view_and_one_partition_for_two_is_violated() -> None:
    story = settled()
    first = deals(story, "m1", 2_000, 2_010, 2_050, wants=[0, 1])
    second = deals(story, "m2", 3_000, 3_010, 3_050, wants=[1], fails="conflict")
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 dealt from one view, and both want t/1",
        (first, second),
        {**NONE, "count": 1, "contradictions": 1, "rounds": 2},
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
    finding = CHECKS["disagreement"].judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "it never came to rest; the group never came to rest, so no change was looked at"


def test_a_fault_that_did_not_bite_leaves_it_open() -> None:
    story = settled()
    story.fault(1_500, "lag", "z1")
    assert judge(story).outcome is Outcome.UNKNOWN


def test_members_that_tell_no_decision_are_not_looked_at() -> None:
    story = settled()
    assert not CHECKS["disagreement"].applies(story.history())
    deals(story, "m1", 2_000, 2_010, 2_050)
    assert CHECKS["disagreement"].applies(story.history())
