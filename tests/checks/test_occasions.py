"""Where nobody gives anything up, though members come or go, the order in a rebalance (Z5a) is not tested."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.checks.order_in_rebalance import occasion


@pytest.mark.parametrize(("came_ms", "tested"), [(1500, True), (2500, False)])
def test_members_that_come_are_an_occasion_to_give_up(came_ms: float, *, tested: bool) -> None:
    """m2 comes before the first rest, as a group is assembled, or after it."""
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.ends(100, "m1")
    if came_ms < 2000:
        story.joins(came_ms, "m2")
    story.rest(2000)
    if came_ms > 2000:
        story.joins(came_ms, "m2")
    story.rest(4000)
    finding = CHECKS["order_in_rebalance"].judge(story.history())
    why = "no attempt both gave up a partition and claimed one, although /consumers/g/ids/g_m2 came or went"
    assert finding.outcome is (Outcome.CLEAN if tested else Outcome.UNKNOWN)
    assert (finding.why == why) is not tested


def settled(*owners: str) -> GroupStory:
    """m1 and m2 at their first rest; `owners` of them own a partition each."""
    story = GroupStory()
    for number, actor in enumerate(("m1", "m2")):
        story.joins(number, actor)
    for number, actor in enumerate(owners):
        story.claims(50, actor, number)
    story.rest(2000)
    return story


def test_a_member_that_comes_while_another_owns_something_is_an_occasion() -> None:
    story = settled("m1")
    came = story.joins(2500, "m3")
    story.rest(4000)
    found = occasion(story.history())
    assert found is not None and found.id == came


def test_ids_are_nothing_to_give_up() -> None:
    story = settled()
    story.joins(2500, "m3")
    story.rest(4000)
    assert occasion(story.history()) is None


def test_who_goes_gives_nothing_up_to_itself() -> None:
    story = settled("m2")
    story.goes(2500, "m2")
    story.rest(4000)
    assert occasion(story.history()) is None


def test_owners_of_another_group_are_not_concerned() -> None:
    story = settled("m1")
    story.joins(2500, "m3", group="other")
    story.rest(4000)
    assert occasion(story.history()) is None


def test_an_owner_that_is_paused_is_not_concerned() -> None:
    story = settled("m1")
    story.paused(2400, 2600, "m1")
    story.joins(2500, "m3")
    story.rest(4000)
    assert occasion(story.history()) is None


def test_what_was_released_before_the_change_is_not_given_up_for_it() -> None:
    story = settled("m1")
    story.releases(2400, "m1", 0)
    story.joins(2500, "m3")
    story.rest(4000)
    assert occasion(story.history()) is None


def test_a_change_that_no_rest_follows_is_no_occasion() -> None:
    story = settled("m1")
    story.joins(2500, "m3")
    assert occasion(story.history()) is None
