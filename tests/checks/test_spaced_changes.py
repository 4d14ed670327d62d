"""Spaced changes (Z7): what an announced change is, whose it is, and why its cost may say nothing."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from test_check_herd_cost import join, one_at_rest

from rebalance_lab.checks.change_costs import CostComparison, Expected, cost_comparisons
from rebalance_lab.checks.spaced_changes import SpacedChange, spaced_changes
from rebalance_lab.history.events import Kind

NOT_ONE = "the join announced by runner/1 is not the only change until the next rest"


def change(story: GroupStory) -> SpacedChange:
    (found,) = spaced_changes(story.history())
    return found


def doubted(story: GroupStory) -> bool:
    return change(story).why_not is not None


def test_the_bill_of_a_change_that_says_nothing_expects_nothing() -> None:
    story = join(one_at_rest())
    story.topic(1200, "u", 1)
    (comparison,) = cost_comparisons(story.history())
    nothing = Expected(0, 0, frozenset(), frozenset(), None, None, NOT_ONE)
    assert comparison == CostComparison(change(story), comparison.cost, nothing, (), NOT_ONE, NOT_ONE)
    assert (comparison.cost.reads, comparison.added_reads) == (30, None)


def test_members_of_other_groups_are_not_of_the_change() -> None:
    story = one_at_rest()
    story.joins(500, "m7", group="h")
    assert [life.member for life in change(join(story)).members] == ["g_m1", "g_m2"]


@pytest.mark.parametrize(("comes", "goes", "there"), [
    (500, 999.999, False), (500, 1000, True), (2999.999, 5000, True), (3000, 5000, False),
])  # fmt: skip
def test_who_was_there_between_the_phase_and_the_rest_is_of_it(comes: float, goes: float, there: bool) -> None:
    story = join(one_at_rest())
    story.comes(comes, "m5")
    story.closed(goes, "m5")
    assert ("g_m5" in {life.member for life in change(story).members}) is there


@pytest.mark.parametrize(("ms", "one"), [(997.999, True), (998, False), (2997.999, False), (2998, True)])
def test_another_change_from_2_ms_before_the_phase_until_2_ms_before_the_rest_spoils_it(ms: float, one: bool) -> None:
    """The registry's times may be so much early."""
    story = join(one_at_rest())
    story.topic(ms, "u", 1)
    assert doubted(story) is not one


@pytest.mark.parametrize(("kind", "goes"), [("leave", True), ("crash", True), ("leave", False), ("crash", False)])
def test_who_leaves_or_crashes_takes_its_id_away(kind: str, goes: bool) -> None:
    story = one_at_rest()
    story.joins(500, "m2")
    story.announces(1500, "one goes", change=kind, members=2)
    if goes:
        story.goes(1600, "m2")
    else:
        story.registers(1600, "m3")
    story.rest(3000)
    assert doubted(story) is not goes


def test_a_change_of_a_kind_that_nobody_knows_is_not_the_one() -> None:
    story = one_at_rest()
    story.announces(1500, "something", change="weather", members=1)
    story.topic(1600, "u", 1)
    story.rest(3000)
    assert doubted(story)


@pytest.mark.parametrize("kind", [Kind.DISCONNECTED, Kind.EXPIRED])
@pytest.mark.parametrize(("ms", "spoilt"), [(999.999, False), (1000, True), (2999.999, True), (3000, False)])
def test_a_member_that_loses_its_connection_in_it_spoils_it(kind: Kind, ms: float, spoilt: bool) -> None:
    story = join(one_at_rest())
    story.add(ms, "m1", kind, session="0x1")
    story.add(ms, "m9", kind, session="0x9")  # of nobody in the group
    assert doubted(story) is spoilt


def test_who_is_gone_by_the_rest_may_lose_its_connection() -> None:
    for gone_ms, spoilt in ((2999.999, False), (3000, True)):
        story = join(one_at_rest())
        story.comes(500, "m5")
        story.add(2000, "m5", Kind.DISCONNECTED, session="0x5")
        story.closed(gone_ms, "m5")
        assert doubted(story) is spoilt


@pytest.mark.parametrize(("began", "ended", "spoilt"), [
    (900, 999.999, False), (900, 1000, True), (999.999, 1200, True), (1000, 1200, False),
    (2000, 2999.999, False), (2000, 3000, True), (3000, 3100, False),
])  # fmt: skip
def test_a_rebalance_that_is_half_in_it_spoils_it(began: float, ended: float, spoilt: bool) -> None:
    story = one_at_rest()
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.rebalances(began, ended, "m1")
    story.rest(3000)
    assert doubted(story) is spoilt


@pytest.mark.parametrize(("left", "spoilt"), [(2999.999, False), (3000, True)])
def test_who_leaves_before_the_rest_may_never_end_its_rebalance(left: float, spoilt: bool) -> None:
    story = one_at_rest()
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.begins(1200, "m1")
    story.killed(left, "m1")
    story.rest(3000)
    assert doubted(story) is spoilt


def test_rebalances_count_from_the_phase_until_the_rest() -> None:
    story = one_at_rest()
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.rebalances(1000, 1050, "m1")
    story.fails(1001, "m1")
    story.rebalances(3000, 3100, "m1")
    story.rest(3000)
    (comparison,) = cost_comparisons(story.history())
    assert comparison.cost.rebalances == 1


@pytest.mark.parametrize(("began", "its"), [(999.999, 0), (1000, 1), (2999.999, 1), (3000, 0)])
def test_attempts_that_failed_count_from_the_phase_until_the_rest(began: float, its: int) -> None:
    story = join(one_at_rest())
    story.begins(began, "m1")
    story.fails(began + 1, "m1", conflicts=[0])
    story.ends(began + 2, "m1", "failed")
    assert len(change(story).conflicts()) == its
