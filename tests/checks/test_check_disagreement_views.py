"""Deals from different views (O7, claim Z8), and what follows from them: tiny histories, findings in full."""

from __future__ import annotations

import pytest
from deal_story import NONE, deals, judge, settled
from group_story import GroupStory, pairs

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

APART = {"views_apart": 1, "rounds": 1, "longest_us": 60_000}


def collision(claimed: str = "m1") -> tuple[GroupStory, list[EventId]]:
    """m1 deals itself t/0 from a list of two, m2 meanwhile t/0 and t/1 from one of three, and fails on t/0, which
    `claimed` has claimed; and the ids of their DECIDED and of that claim."""
    story = settled(3, 3)
    story.releases(2_001, "m1", 0)
    story.releases(2_021, "m2", 1)
    older = deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    [claim] = story.claims(2_040, claimed, 0)
    newer = deals(
        story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", members=3, wants=[0, 1], fails="conflict", conflicts=[0]
    )
    return story, [older, newer, claim]


def test_a_deal_from_the_older_list_that_takes_what_is_another_s_is_violated() -> None:
    story, witness = collision()
    finding = judge(story)
    why = (
        "g_m1 and g_m2 decided in one round from lists of 2 and 3 members; as a result, "
        "g_m1 claimed t/0, g_m2's partition by the newer list"
    )
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, why)
    assert finding.witness == tuple(witness)
    more = {"count": 1, "unowned": 1, "wrong_claims": 1, "conflicts": 1}
    assert finding.measures == {**NONE, **APART, **more}


def test_a_stale_deal_that_fails_on_a_conflict_is_violated() -> None:
    story = settled(3, 3)
    story.releases(2_001, "m1", 0)
    story.releases(2_002, "m2", 1)
    newer = deals(story, "m1", 2_000, 2_010, 2_050, zxid=11, view="bb", members=3, wants=[0])
    [claim] = story.claims(2_040, "m1", 0)
    older = deals(story, "m2", 2_020, 2_030, 2_060, zxid=10, wants=[0, 1], fails="conflict", conflicts=[0])
    failed = story.events[-1].id
    finding = judge(story)
    assert finding == Finding(
        Outcome.VIOLATED,
        "g_m1 and g_m2 decided in one round from lists of 3 and 2 members; as a result, g_m2 found t/0 claimed by g_m1",
        (newer, older, claim, failed),
        {**NONE, **APART, "count": 1, "unowned": 1, "conflicts": 1},
    )


def test_a_conflict_with_a_third_that_has_not_released_yet_is_not_laid_to_the_lists() -> None:
    story, _ = collision(claimed="m3")
    finding = judge(story)
    assert finding.outcome is Outcome.CLEAN
    assert finding.why == "members decided at the same time from different views, without harm"
    assert (finding.measures["nothing"], finding.measures["conflicts"]) == (1, 0)


def test_nor_one_with_what_the_other_has_had_from_before() -> None:
    """m1 had claimed t/0 long before it dealt, and is slow to release it."""
    story = settled(3, 3)
    story.releases(2_021, "m2", 1)
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[0, 1], fails="conflict", conflicts=[0])
    assert judge(story).outcome is Outcome.CLEAN


def test_nor_one_on_what_the_other_does_not_want() -> None:
    story = settled(3, 3)
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1, 2], fails="conflict", conflicts=[2])
    assert judge(story).outcome is Outcome.CLEAN


def test_two_lists_and_the_same_shares_are_measured_and_clean() -> None:
    """A member came that gets nothing."""
    story = settled(3, 3)
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", members=3, wants=[1])
    finding = judge(story)
    assert finding == Finding(
        Outcome.CLEAN,
        "members decided at the same time from different views, without harm",
        (),
        {**NONE, **APART, "nothing": 1},
    )


@pytest.mark.parametrize(("came_ms", "stale"), [(2_007.999, 1), (2_008, 0)])
def test_a_list_that_had_changed_before_it_was_dealt_from_is_stale(came_ms: float, stale: int) -> None:
    for wants, succeeded in (([0], stale), ([2], 0)):
        story = settled(3, 3)
        story.releases(2_001, "m1", 0)
        story.joins(came_ms, "m4")
        now = story.events[-1].zxid or 0
        deals(story, "m1", 2_000, 2_010, 2_050, zxid=now - 1, view="aa", wants=wants)
        story.claims(2_040, "m1", *wants)
        deals(story, "m2", 2_020, 2_030, 2_060, zxid=now, view="bb", members=4, wants=[0, 1], fails="error")
        measures = judge(story).measures
        assert (measures["stale_deals"], measures["stale_succeeded"]) == (stale, succeeded)


def test_where_the_clock_drifted_nothing_follows_for_sure() -> None:
    story, _ = collision()
    story._wall_drift_us = 2_001
    assert judge(story).outcome is Outcome.UNKNOWN


def test_from_one_list_they_are_clean() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, wants=[1])
    finding = judge(story)
    why = "members that decided at the same time decided from the same view"
    assert finding == Finding(Outcome.CLEAN, why, (), {**NONE, "rounds": 1})


def test_one_after_the_other_they_may_see_what_there_is_then() -> None:
    """The list has changed meanwhile: the second saw more."""
    for ended_ms, apart in ((2_020, 0), (2_021, 1)):
        story = settled()
        deals(story, "m1", 2_000, 2_010, ended_ms, zxid=10, view="aa", wants=[0])
        deals(story, "m2", 2_005, 2_020, 2_060, zxid=11, view="bb", wants=[1])
        assert judge(story).measures["views_apart"] == apart


def test_who_deals_from_an_older_list_than_somebody_had_is_apart_however_late() -> None:
    story = settled(3, 3)
    story.releases(2_001, "m1", 0)
    newer = deals(story, "m1", 2_000, 2_010, 2_020, zxid=11, view="bb", members=3, wants=[0])
    [claim] = story.claims(2_015, "m1", 0)
    older = deals(story, "m2", 5_000, 5_010, 5_020, zxid=10, wants=[0, 1], fails="conflict", conflicts=[0])
    failed = story.events[-1].id
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (newer, older, claim, failed))
    assert (finding.measures["conflicts"], finding.measures["rounds"]) == (1, 2)


def test_a_member_alone_may_change_its_mind() -> None:
    """A server behind which it moved: its own two lists are in nobody's way."""
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_020, zxid=11, view="bb", wants=[0])
    deals(story, "m1", 3_000, 3_010, 3_020, zxid=10, view="aa", wants=[0])
    assert judge(story).measures["views_apart"] == 0


def test_a_paused_member_that_deals_when_it_wakes_disagrees_with_nobody() -> None:
    """Its attempt spans what others did meanwhile; its list is the newest when it deals."""
    story = settled()
    story.begins(2_000, "m1")
    deals(story, "m2", 3_000, 3_010, 3_020, zxid=11, view="bb", members=1, wants=[0, 1])
    detail = {"members": 2, "members_zxid": 12, "view": "cc", "wants": pairs([0])}
    story.counted(6_000, "m1", children=1)
    story.member(6_000, "m1", Kind.DECIDED, detail=detail)
    story.ends(6_010, "m1")
    assert judge(story).measures["views_apart"] == 0


def test_the_same_list_and_other_partitions_are_two_views() -> None:
    story = settled()
    story.releases(2_001, "m1", 0)
    one = deals(story, "m1", 2_000, 2_010, 2_050, view="aa", wants=[0])
    [claim] = story.claims(2_040, "m1", 0)
    other = deals(story, "m2", 2_020, 2_030, 2_060, view="bb", wants=[0], fails="conflict", conflicts=[0])
    failed = story.events[-1].id
    finding = judge(story)
    assert (
        finding.why
        == "g_m1 and g_m2 decided in one round from different partitions; as a result, g_m2 found t/0 claimed by g_m1"
    )
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (one, other, claim, failed))
    assert (finding.measures["nothing"], finding.measures["wrong_claims"]) == (0, 0)


def test_digests_over_different_topics_say_nothing() -> None:
    story = settled(m2={"u": 1})
    deals(story, "m1", 2_000, 2_010, 2_050, view="aa", wants=[0])
    deals(story, "m2", 2_020, 2_030, 2_060, view="bb")
    assert judge(story).measures["views_apart"] == 0


def test_other_groups_are_no_business_of_one_another() -> None:
    story = settled()
    story.joins(40, "m3", group="h")
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, wants=[0])
    story.begins(2_020, "m3", group="h")
    detail = {"members": 1, "members_zxid": 99, "view": "hh", "wants": pairs([0, 1])}
    story.counted(2_030, "m3", children=1)
    story.add(2_030, "m3", Kind.DECIDED, member="h_m3", group="h", detail=detail)
    story.ends(2_060, "m3", group="h")
    assert judge(story).measures["views_apart"] == 0


def leaves_out(
    members: int = 3, claimed_ms: float = 2_063, gone_ms: float | None = None, released_ms: float = 2_005
) -> tuple[GroupStory, list[EventId]]:
    """m1, m2 and m3, of so many `members`, deal from two lists, and none wants t/2, which m3 had and m2 claims only
    later. The last member's id goes at `gone_ms`."""
    story = settled(members, 4)
    now = story.events[-3].zxid or 0  # of the last id
    story.releases(released_ms, "m3", 2)
    one = deals(story, "m1", 2_000, 2_010, 2_050, zxid=now - 1, view="aa", wants=[0])
    two = deals(story, "m2", 2_020, 2_030, 2_060, zxid=now, view="bb", members=3, wants=[1])
    three = deals(story, "m3", 2_021, 2_031, 2_060, zxid=now, view="bb", members=3)
    if gone_ms is not None:
        story.goes(gone_ms, f"m{members}")
        story.member(gone_ms, f"m{members}", Kind.MEMBER_CLOSING)
    story.claims(claimed_ms, "m2", 2)
    return story, [one, two, three]


def test_what_nobody_wants_and_nobody_owns_is_told_first() -> None:
    story, decided = leaves_out()
    finding = judge(story)
    assert finding.why.endswith("as a result, no member wants t/2, and no member owns it")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, tuple(decided))
    assert (finding.measures["unowned"], finding.measures["left_out"]) == (1, 1)


def test_what_changes_no_list_of_the_group_s_members_is_no_change_of_theirs() -> None:
    story, _ = leaves_out()
    story.topic(2_030, "u", 1)
    story.joins(2_030, "m9", group="h")
    path, detail = "/consumers/g/ids/g_m1", {"ephemeral": True, "data": "{}"}
    story.registry(2_030, Kind.CHANGED, path, "0x1", member="g_m1", group="g", detail=detail)
    assert judge(story).measures["left_out"] == 1


@pytest.mark.parametrize(("started_ms", "left_out"), [(2_060, 0), (2_060.001, 1)])
def test_who_starts_before_the_round_ends_may_want_what_is_left(started_ms: float, left_out: int) -> None:
    story, _ = leaves_out()
    story.comes(started_ms, "m4")
    assert judge(story).measures["left_out"] == left_out


def test_of_several_rounds_the_one_that_left_most_out_is_told() -> None:
    """Then the one with most wrong claims, or most conflicts."""
    story, _ = collision()
    story.releases(4_005, "m3", 2)
    one = deals(story, "m1", 4_000, 4_010, 4_050, zxid=11, view="bb", members=3, wants=[0])
    two = deals(story, "m2", 4_020, 4_030, 4_060, zxid=12, view="cc", members=3, wants=[1])
    three = deals(story, "m3", 4_021, 4_031, 4_060, zxid=12, view="cc", members=3)
    finding = judge(story)
    assert (finding.measures["count"], finding.witness) == (2, (one, two, three))
    assert finding.why.endswith("as a result, no member wants t/2, and no member owns it")


def test_an_owner_that_comes_within_2_ms_of_the_end_is_in_doubt() -> None:
    story, _ = leaves_out(claimed_ms=2_062)
    finding = judge(story)
    assert (finding.outcome, finding.measures["unowned"]) == (Outcome.CLEAN, 0)


@pytest.mark.parametrize(("released_ms", "unowned"), [(2_058, 1), (2_058.001, 0)])
def test_an_owner_that_goes_within_2_ms_of_the_end_is_in_doubt(released_ms: float, unowned: int) -> None:
    story, _ = leaves_out(released_ms=released_ms)
    assert judge(story).measures["unowned"] == unowned


def test_while_a_member_has_yet_to_deal_it_may_be_its_own() -> None:
    story, _ = leaves_out(members=4)
    finding = judge(story)
    assert (finding.outcome, finding.measures["unowned"]) == (Outcome.CLEAN, 1)


@pytest.mark.parametrize(("left_ms", "left_out"), [(2_060, 1), (2_061, 0)])
def test_who_has_left_deals_no_more(left_ms: float, left_out: int) -> None:
    story, _ = leaves_out(members=4)
    story.member(left_ms, "m4", Kind.MEMBER_CLOSING)
    assert judge(story).measures["left_out"] == left_out


@pytest.mark.parametrize(("gone_ms", "left_out"), [(2_061.999, 0), (2_062, 1)])
def test_what_a_member_leaves_behind_that_nobody_has_heard_of_is_not_laid_to_the_lists(
    gone_ms: float, left_out: int
) -> None:
    story, _ = leaves_out(gone_ms=gone_ms)
    assert judge(story).measures["left_out"] == left_out


def test_what_is_kept_over_attempts_is_one_deal() -> None:
    """With keep.claims.on.conflict a later attempt goes on with the plan of an earlier one."""
    story = settled()
    story.begins(2_000, "m1")
    detail = {"members": 1, "members_zxid": 10, "view": "aa", "wants": pairs([0, 1])}
    story.counted(2_010, "m1", children=1)
    older = story.member(2_010, "m1", Kind.DECIDED, detail=detail)
    failed = {"why": "w", "reason": "conflict", "conflicts": pairs([1]), "holds": pairs([0])}
    story.refused(2_020, "m1")
    story.member(2_020, "m1", Kind.ATTEMPT_FAILED, detail=failed)
    story.releases(2_201, "m2", 1)
    newer = deals(story, "m2", 2_200, 2_210, 2_220, zxid=11, view="bb", wants=[1])
    [claim] = story.claims(2_215, "m2", 1)
    story.attempts(2_500, "m1")
    story.refused(2_510, "m1")
    again = story.member(2_510, "m1", Kind.ATTEMPT_FAILED, detail=failed)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (older, newer, claim, again))


def test_an_attempt_that_a_shutdown_ended_dealt_for_nothing() -> None:
    story = settled()
    deals(story, "m1", 2_000, 2_010, 2_050, zxid=10, view="aa", wants=[0], fails="shutdown")
    deals(story, "m2", 2_020, 2_030, 2_060, zxid=11, view="bb", wants=[1])
    assert judge(story).measures["views_apart"] == 0
