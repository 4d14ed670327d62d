"""Writes of a spaced change (Z7c): the parents that registering and claiming must create first."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks.change_costs import CostComparison, cost_comparisons
from rebalance_lab.history.events import Kind


def first_joins(*made: str, gone: tuple[str, ...] = (), brokers: int = 1, reads: str = "t") -> CostComparison:
    """m1 joins a group of none at 1100 ms to read this topic, and claims t/0. `made`: znodes that stood before,
    but for `gone`."""
    story = GroupStory()
    for number in range(brokers):
        story.broker(0, number)
    story.topic(0, "t", 1)
    for path in made:
        story.registry(100, Kind.CREATED, path, "0xff", group=None, detail={"ephemeral": False})
    for path in gone:
        story.registry(200, Kind.DELETED, path, "0xff", group=None)
    story.rest(1000)
    story.announces(1000, "one joins", change="join", members=0)
    story.joins(1100, "m1", streams={reads: 1})
    story.rebalances(1120, 1150, "m1")
    story.claims(1130, "m1", 0)
    story.counted(1300, "m1", get=1)
    story.rest(3000)
    (comparison,) = cost_comparisons(story.history())
    return comparison


#: Its id and its claim.
OWN = 2

IDS, OWNERS = "/consumers/g/ids", "/consumers/g/owners"


def test_in_a_new_group_each_parent_is_refused_once_and_made() -> None:
    """/consumers, the group, its ids, its owners, and the topic below these."""
    comparison = first_joins()
    assert (comparison.incomparable, comparison.expected.writes, comparison.expected.members) == (None, OWN + 2 * 5, 1)


def test_who_reads_what_does_not_exist_makes_no_parents_of_owners() -> None:
    """/consumers, the group and its ids, and the id itself."""
    assert first_joins(reads="u").expected.writes == 1 + 2 * 3


def test_what_stands_below_a_parent_shows_that_it_is_there() -> None:
    assert first_joins(f"{OWNERS}/t").expected.writes == OWN + 2
    assert first_joins(IDS).expected.writes == OWN + 2 * 2
    assert first_joins(IDS, f"{OWNERS}/t").expected.writes == OWN


def test_a_parent_that_was_deleted_must_be_made_again() -> None:
    assert first_joins(IDS, f"{OWNERS}/t", gone=(f"{OWNERS}/t",)).expected.writes == OWN + 2
    assert first_joins(IDS, f"{OWNERS}/t", gone=(f"{OWNERS}/t", OWNERS)).expected.writes == OWN + 2 * 2


def test_without_brokers_there_is_no_formula() -> None:
    comparison = first_joins(brokers=0)
    assert comparison.incomparable == "there are no brokers, so the attempts end early"
    assert (comparison.expected.reads, comparison.expected.writes) == (None, None)


def test_several_members_race_for_the_parents() -> None:
    story = GroupStory()
    story.broker(0, 0)
    story.topic(0, "t", 1)
    story.joins(10, "m1")
    story.rebalances(20, 50, "m1")
    story.rest(1000)
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    for actor in ("m1", "m2"):
        story.rebalances(1120, 1150, actor)
        story.counted(1300, actor, get=1)
    story.claims(1130, "m1", 0)
    story.rest(3000)
    (comparison,) = cost_comparisons(story.history())
    assert comparison.incomparable == "several members race for the parents of the first owner znodes"
