"""The order in a rebalance (Z5a): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome

CHECK = CHECKS["order_in_rebalance"]


def owner_of_two(**told: object) -> GroupStory:
    """m1 owns t/0 and t/1 from its first rebalance (until 100 ms), and begins another at 1000 ms: m1/4."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0, 1)
    story.ends(100, "m1")
    story.begins(1000, "m1")
    return story


def judge(story: GroupStory) -> Finding:
    story.rest(2000)
    return CHECK.judge(story.history())


def test_all_is_given_up_before_anything_is_taken() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 1, 2)
    story.ends(1100, "m1")
    numbers = {"count": 0, "rebalances": 2, "both": 1, "claims": 4, "releases": 2}
    why = "in every rebalance all releases came before the first claim"
    assert judge(story) == Finding(Outcome.CLEAN, why, (), numbers)


def test_something_is_taken_before_all_is_given_up() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0)
    [claim] = story.claims(1020, "m1", 2)
    [late] = story.releases(1030, "m1", 1)
    story.ends(1100, "m1")
    numbers = {"count": 1, "rebalances": 2, "both": 1, "claims": 3, "releases": 2}
    why = "g_m1 claimed t/2, then gave t/1 up"
    assert judge(story) == Finding(Outcome.VIOLATED, why, (("m1", 5), claim, late), numbers)


def test_the_registry_s_order_counts_not_its_times() -> None:
    story = owner_of_two()
    story.claims(1020, "m1", 2)
    story.releases(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.VIOLATED


def test_what_a_rebalance_made_it_may_take_back() -> None:
    """A conflict: what was claimed goes again, and the next attempt claims once more."""
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.releases(1030, "m1", 0)
    story.claims(1600, "m1", 0, 1)
    story.ends(1700, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_what_goes_with_a_session_is_no_release() -> None:
    story = owner_of_two()
    story.claims(1020, "m1", 2)
    story.deleted(1030, "m1", 0, "0x1", detail={"with_session": True})
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_a_blind_release_of_what_is_another_s_by_now_is_a_release() -> None:
    story = owner_of_two()
    story.joins(1001, "m2")
    story.claims(1005, "m2", 5)
    story.claims(1020, "m1", 2)
    story.deleted(1030, "m2", 5, "0x1")  # m2's znode, deleted by m1's session
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/2, then gave t/5 up")


@pytest.mark.parametrize(
    ("claim_ms", "release_ms", "outcome"),
    [
        (1002, 1198, Outcome.VIOLATED),
        (1001.999, 1050, Outcome.CLEAN),  # the claim may be of the rebalance before
        (1050, 1198.001, Outcome.CLEAN),  # the release may be of the one after, which begins at 1200 ms
        (1050, 1150, Outcome.VIOLATED),  # after the rebalance has ended: nobody writes outside of one
    ],
)
def test_within_2_ms_of_a_beginning_nothing_is_sure(claim_ms: float, release_ms: float, outcome: Outcome) -> None:
    story = owner_of_two()
    story.claims(claim_ms, "m1", 2)
    story.releases(release_ms, "m1", 0)
    story.ends(1100, "m1")
    story.rebalances(1200.001 if release_ms == 1198 else 1200, 1300, "m1")
    assert judge(story).outcome is outcome


def test_what_comes_2_ms_before_the_first_rebalance_is_of_it() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(8, "m1", 0)
    story.claims(7.999, "m1", 1)
    story.rebalances(10, 20, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["claims"]) == (Outcome.CLEAN, 1)


def test_who_had_nothing_breaks_no_order() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.ends(100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["both"]) == (Outcome.CLEAN, 0)


def test_without_a_claim_there_is_nothing_to_look_at() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    assert not CHECK.applies(story.history())
    story.rebalances(10, 20, "m1")
    assert CHECK.applies(story.history())
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no rebalance claimed a partition")


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = owner_of_two(wall_drift_us=2_001)
    story.claims(1020, "m1", 2)
    story.releases(1030, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.UNKNOWN
