"""What follows where members dealt from different views."""

from __future__ import annotations

import pytest
from test_deals import DealStory

from rebalance_lab.checks.decisions import decisions_in, differing_pairs
from rebalance_lab.checks.disagreement import split_conflicts_of, wrong_claims_of
from rebalance_lab.checks.phases import judged_period
from rebalance_lab.history.events import EventId


def wrong_claims(story: DealStory) -> list[tuple[str, tuple[EventId, ...]]]:
    history, decisions = story.history(), story.deals()
    return [(each.why, each.evidence) for each in wrong_claims_of(history, differing_pairs(decisions), decisions)]


def conflicts(story: DealStory) -> list[str]:
    history = story.history()
    period = judged_period(history)
    assert period is not None
    return [each.why for each in split_conflicts_of(history, differing_pairs(decisions_in(history, period)))]


def test_wrong_claims_are_told_in_the_order_of_the_deal() -> None:
    story = DealStory()
    wants = [6, 2, 5, 1, 4, 3]
    claims = {each: story.claims(2020, "m1", each)[0] for each in wants}
    story.dealt(2000, 2010, 2050, "m1", zxid=10, wants=[*wants, 7])
    newer = story.dealt(2000, 2040, 2060, "m2", zxid=11, wants=sorted(wants))
    assert wrong_claims(story) == [
        (f"g_m1 claimed t/{each}, g_m2's partition by the newer list", (claims[each], newer)) for each in wants
    ]


@pytest.mark.parametrize(("ms", "counts"), [(1997.999, 0), (1998, 1), (2052, 1), (2052.001, 0)])
def test_a_claim_is_of_the_deal_that_was_under_way(ms: float, counts: int) -> None:
    """2 ms either way, as layers are compared."""
    story = DealStory()
    story.claims(ms, "m1", 0)
    story.dealt(2000, 2010, 2050, "m1", zxid=10, wants=[0])
    story.dealt(2000, 2040, 2060, "m2", zxid=11, wants=[0])
    assert len(wrong_claims(story)) == counts


def test_the_stale_deal_may_be_the_later_one() -> None:
    """A pair before it, whose stale deal never succeeded, hides nothing."""
    story = DealStory()
    story.dealt(2000, 2010, 2050, "m1", zxid=11, wants=[0])
    story.claims(2520, "m3", 0)
    story.releases(2530, "m3", 0)
    story.dealt(2500, 2510, None, "m3", zxid=9, wants=[0])
    story.fails(2550, "m3")
    story.claims(3020, "m2", 0)
    story.dealt(3000, 3010, 3060, "m2", zxid=10, wants=[0])
    assert [why for why, _ in wrong_claims(story)] == ["g_m2 claimed t/0, g_m1's partition by the newer list"]


def test_what_a_member_dealt_itself_from_the_newer_list_is_no_wrong_claim() -> None:
    """m1 has dealt from the newer list before, and m2 deals from it now."""
    story = DealStory()
    story.dealt(1500, 1510, 1550, "m1", zxid=11, wants=[0])
    story.claims(2020, "m1", 0)
    story.dealt(2000, 2010, 2050, "m1", zxid=10, wants=[0])
    story.dealt(2005, 2040, 2060, "m2", zxid=11, wants=[0])
    assert [why for why, _ in wrong_claims(story)] == ["g_m1 claimed t/0, g_m2's partition by the newer list"]


def test_each_partition_of_a_conflict_is_laid_to_the_other_deal() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1", zxid=10, wants=[0, 1])
    story.meets(2040, "m1", [0, 1])
    story.claims(2030, "m2", 0, 1)
    story.dealt(2000, 2030, 2060, "m2", zxid=11, wants=[0, 1])
    assert conflicts(story) == [f"g_m1 found t/{each} claimed by g_m2" for each in (0, 1)]


def test_what_nobody_claimed_is_no_wrong_claim() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2050, "m1", zxid=10, wants=[0])
    story.dealt(2000, 2040, 2060, "m2", zxid=11, wants=[0])
    assert wrong_claims(story) == []


@pytest.mark.parametrize(
    ("claimed", "released", "met"),
    [(2042, None, True), (2042.001, None, False), (2005, 2008, True), (2005, 2007.999, False)],
)
def test_a_conflict_is_laid_to_the_other_deal_if_its_claim_stood_meanwhile(
    claimed: float, released: float | None, met: bool
) -> None:
    """m1 decides at 2010 and fails at 2040 on t/0."""
    story = DealStory()
    story.dealt(2000, 2010, None, "m1", zxid=10, wants=[0, 1])
    story.meets(2040, "m1", [0, 1])
    story.claims(claimed, "m2", 0)
    story.claims(claimed, "m2", 1)  # which is not what m2 dealt itself
    if released is not None:
        story.releases(released, "m2", 0)
    story.dealt(2000, 2030, 2060, "m2", zxid=11, wants=[0])
    assert conflicts(story) == (["g_m1 found t/0 claimed by g_m2"] if met else [])
