"""Of which attempt a write is (Z5a): by the reply, else by times, which leave 2 ms in doubt."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from test_check_order_in_rebalance import judge, owner_of_two

from rebalance_lab.checks import Outcome


@pytest.mark.parametrize(
    ("claims_ms", "why"),
    [
        ((1010, 1020), "g_m1 claimed t/2, then gave up t/5"),
        ((1001, 1020), "g_m1 claimed t/3, then gave up t/5"),  # t/2 may be the former attempt's
        ((1001, 1020, 1030), "g_m1 claimed t/3, then gave up t/5"),
    ],
)
def test_the_first_claim_that_is_surely_of_the_attempt_is_told(claims_ms: tuple[float, ...], why: str) -> None:
    story = owner_of_two()
    story.joins(900, "m2")
    story.begins(901, "m2")
    story.claims(905, "m2", 5)
    story.ends(906, "m2")
    story.releases(990, "m1", 0, 1)
    for partition, ms in enumerate(claims_ms, 2):
        story.claims(ms, "m1", partition)
    story.deleted(1040, "m2", 5, "0x1")
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, why)


@pytest.mark.parametrize(
    ("claim_ms", "release_ms", "outcome"),
    [
        (1002, 1198, Outcome.VIOLATED),
        (1001.999, 1050, Outcome.UNKNOWN),  # the claim may be of the rebalance before
        (998, 1050, Outcome.UNKNOWN),
        (997.999, 1050, Outcome.VIOLATED),  # after the rebalance before: of none
        (1050, 1198.001, Outcome.VIOLATED),  # whichever rebalance released it: it stood when this one claimed
    ],
)
def test_within_2_ms_of_a_beginning_nothing_is_sure(claim_ms: float, release_ms: float, outcome: Outcome) -> None:
    story = owner_of_two()
    story.releases(990, "m1", 1)
    story.claims(claim_ms, "m1", 2)
    story.releases(release_ms, "m1", 0)
    story.ends(1100, "m1", "failed")
    story.rebalances(1200.001 if release_ms == 1198 else 1200, 1300, "m1", "failed")
    assert judge(story).outcome is outcome


@pytest.mark.parametrize(("release_ms", "outcome"), [(1198, Outcome.VIOLATED), (1198.001, Outcome.UNKNOWN)])
def test_a_late_blind_release_within_2_ms_of_the_next_beginning_is_not_sure(
    release_ms: float, outcome: Outcome
) -> None:
    story = owner_of_two()
    story.joins(900, "m2")
    story.begins(901, "m2")
    story.claims(905, "m2", 5)
    story.ends(906, "m2")
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 2)
    story.deleted(release_ms, "m2", 5, "0x1")
    story.ends(1100, "m1")
    story.rebalances(1200.001 if release_ms == 1198 else 1200, 1300, "m1", "failed")
    assert judge(story).outcome is outcome


@pytest.mark.parametrize("begun", [False, True])
def test_the_reply_says_of_which_attempt_a_write_is(begun: bool) -> None:
    """The claim of t/2 comes at the microsecond of the next beginning."""
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1030, "m1")
    if begun:
        story.begins(1100, "m1")
    story.claims(1100, "m1", 2)
    story.asks(1100, "m1", "create", "/consumers/g/owners/t/2", zxid=story.events[-1].zxid or 0)
    if not begun:
        story.begins(1100, "m1")
    story.ends(1150, "m1", "ok" if begun else "failed")
    finding = judge(story)
    assert (finding.outcome, finding.measures["attempts"]) == (Outcome.VIOLATED, 3 if begun else 2)
    why = "while it held t/0" if begun else "outside of its attempts to rebalance"
    assert finding.why == f"g_m1 claimed t/2 {why}"


def test_what_comes_2_ms_before_the_first_rebalance_is_of_it() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(8, "m1", 0)
    story.rebalances(10, 20, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["claims"]) == (Outcome.CLEAN, 1)


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = owner_of_two(wall_drift_us=2_001)
    story.claims(1020, "m1", 2)
    story.releases(1030, "m1", 0)
    story.ends(1100, "m1")
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.endswith(
        "; no rebalance claimed a partition; "
        "g_m1 claimed t/1 while it held t/0, unless one of these writes belongs to another attempt"
    )


def test_under_a_clock_that_drifted_nothing_is_clean_though_the_replies_are_recorded() -> None:
    story = GroupStory(wall_drift_us=2_001)
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.asks(50, "m1", "create", "/consumers/g/owners/t/0", zxid=story.events[-1].zxid or 0)
    story.ends(100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["claims"]) == (Outcome.UNKNOWN, 1)
    assert finding.why == "the wall clock drifted by 2001 us: registry times are not comparable with other times"


@pytest.mark.parametrize(("before", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)])
def test_the_reply_says_whether_a_release_came_before_the_end(before: bool, outcome: Outcome) -> None:
    """At one microsecond, where the registry's time leaves it open."""
    story = owner_of_two()
    story.releases(1010, "m1", 1)
    story.decides(1020, "m1", [])
    if not before:
        story.ends(1100, "m1")
    story.releases(1100, "m1", 0)
    story.asks(1100, "m1", "delete", "/consumers/g/owners/t/0", zxid=story.events[-1].zxid or 0)
    if before:
        story.ends(1100, "m1")
    assert judge(story).outcome is outcome


def test_a_clean_order_under_a_clock_that_drifted_is_not_known() -> None:
    story = owner_of_two(wall_drift_us=2_001)
    story.ends(1100, "m1", "failed")
    assert judge(story).outcome is Outcome.UNKNOWN


def test_claims_may_be_kept_only_where_it_is_sure_whose_they_are() -> None:
    story = owner_of_two(lab=["keep.claims.on.conflict"])
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 3)
    story.fails(1030, "m1", conflicts=[4])
    story.attempts(1500, "m1")
    story.claims(1501, "m1", 4)
    story.ends(1600, "m1")
    finding = judge(story)
    why = "g_m1 claimed t/4 while it held t/3, unless one of these writes belongs to another attempt"
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, why)


def test_claims_of_the_first_attempt_of_all_may_be_kept_too() -> None:
    story = GroupStory()
    story.comes(0, "m1", lab=["keep.claims.on.conflict"])
    story.registers(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 3)
    story.fails(60, "m1", conflicts=[4])
    story.attempts(500, "m1")
    story.claims(520, "m1", 4)
    story.ends(600, "m1")
    assert judge(story).outcome is Outcome.CLEAN
