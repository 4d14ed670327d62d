"""Who waits for whom: members that hold what others wait for, in a circle that lasts."""

from __future__ import annotations

import pytest
from group_story import GroupStory, Wants

from rebalance_lab.checks.hold_and_wait import wait_cycles
from rebalance_lab.history.events import Kind

#: When the circles of these stories are looked at, where the group does not rest before.
UNTIL_US = 20_000_000


class WaitStory(GroupStory):
    """Goes on until `closing` at 20 s."""

    def __init__(self) -> None:
        super().__init__()
        self.phase(UNTIL_US / 1000, "closing")

    def holds(self, ms: float, actor: str, *partitions: int) -> None:
        """It joins, begins a rebalance and claims."""
        self.joins(ms - 20, actor)
        self.begins(ms - 10, actor)
        self.claims(ms, actor, *partitions)

    def cycles(self, until_us: int = UNTIL_US) -> list[dict[str, tuple[str, str]]]:
        """The circles found, each as member -> what it holds, what it waits for."""
        found = wait_cycles(self.history(), until_us)
        return [{wait.member: (wait.holds, wait.waits_for) for wait in cycle} for cycle in found]


def circle(*, claimed: float = 1000, failed: float = 1000) -> WaitStory:
    """m1 holds t/0 and waits for t/1 from `failed` on; m2 the other way round."""
    story = WaitStory()
    story.holds(claimed, "m1", 0)
    story.holds(claimed, "m2", 1)
    story.meets(failed, "m1", [1])
    story.meets(failed, "m2", [0])
    return story


BOTH = [{"g_m2": ("t/1", "t/0"), "g_m1": ("t/0", "t/1")}]


# -- what makes a member wait -------------------------------------------------------------------


def test_a_circle_of_two_that_nobody_breaks() -> None:
    assert circle().cycles() == BOTH


def test_all_that_a_member_holds_and_wants_is_told() -> None:
    story = WaitStory()
    story.holds(1000, "m1", 0, 2)
    story.holds(1000, "m2", 1, 3)
    story.meets(1010, "m1", [1, 3])
    story.meets(1020, "m2", [0])
    assert story.cycles() == [{"g_m2": ("t/1, t/3", "t/0"), "g_m1": ("t/0, t/2", "t/1, t/3")}]


@pytest.mark.parametrize("reason", ["no-brokers", "shutdown"])
def test_an_attempt_that_failed_for_something_else_waits_for_nobody(reason: str) -> None:
    story = WaitStory()
    story.holds(1000, "m1", 0)
    story.holds(1000, "m2", 1)
    story.refused(1010, "m1")
    story.fails(1010, "m1", reason, conflicts=[1])
    story.meets(1020, "m2", [0])
    assert story.cycles() == []


def test_a_conflict_over_what_nobody_owns_any_more_is_no_wait() -> None:
    story = WaitStory()
    story.holds(1000, "m1", 0)
    story.holds(1000, "m2", 1, 7)
    story.releases(1005, "m2", 7)
    story.meets(1010, "m1", [7])
    story.meets(1020, "m2", [0])
    assert wait_cycles(story.history(), UNTIL_US) == []
    story.attempts(1500, "m1")
    story.meets(1510, "m1", [1])
    assert story.cycles() == [{"g_m1": ("t/0", "t/1"), "g_m2": ("t/1", "t/0")}]


@pytest.mark.parametrize("refused", [True, False])
def test_a_conflict_that_the_registry_contradicts_is_no_wait(refused: bool) -> None:
    """m1 has t/0 itself; or ZooKeeper refused it nothing."""
    story = WaitStory()
    story.holds(1000, "m1", 0)
    story.holds(1000, "m2", 1)
    if refused:
        story.meets(1010, "m1", [0, 1])
    else:
        story.fails(1010, "m1", conflicts=[1])
    story.meets(1020, "m2", [0])
    assert story.cycles() == []


def test_who_claims_only_after_the_failure_held_nothing_then() -> None:
    assert circle(claimed=1000.001, failed=1000).cycles() == []


@pytest.mark.parametrize(("released", "cycles"), [(1002, []), (1002.001, BOTH)])
def test_what_is_released_within_2_ms_was_not_held_beyond_doubt(released: float, cycles: object) -> None:
    """The registry's times may be so much too late. The circle is looked at until it closes."""
    story = circle()
    story.releases(released, "m2", 1)
    assert story.cycles(until_us=1_000_000) == cycles


def test_who_holds_nothing_waits_for_nobody() -> None:
    story = circle()
    story.joins(980, "m3")
    story.begins(990, "m3")
    story.meets(1000, "m3", [0])
    assert story.cycles() == BOTH


# -- circles ------------------------------------------------------------------------------------


def test_a_circle_of_three_is_found_past_a_holder_that_waits_for_nobody() -> None:
    """m1 wants t/4, whose owner m4 goes on its way, and t/1; m2 wants t/2, m3 wants t/0."""
    story = WaitStory()
    for actor, partition in (("m1", 0), ("m2", 1), ("m3", 2), ("m4", 4)):
        story.holds(1000, actor, partition)
    wants: dict[str, Wants] = {"m1": [4, 1], "m2": [2], "m3": [0]}
    for ms, actor in ((1010, "m1"), (1020, "m2"), (1030, "m3")):
        story.meets(ms, actor, wants[actor])
    assert [list(cycle) for cycle in story.cycles()] == [["g_m3", "g_m1", "g_m2"]]


def test_every_circle_is_told() -> None:
    story = circle()
    story.holds(1000, "m3", 2)
    story.holds(1000, "m4", 3)
    story.meets(1010, "m3", [3])
    story.meets(1020, "m4", [2])
    assert story.cycles() == [*BOTH, {"g_m4": ("t/3", "t/2"), "g_m3": ("t/2", "t/3")}]


def test_a_chain_is_no_circle() -> None:
    """m3 waits for m1 and m2, which wait for each other: a circle of two, and m3 is not in it."""
    story = circle()
    story.holds(1000, "m3", 2)
    story.meets(1030, "m3", [0, 1])
    assert story.cycles() == BOTH


def test_a_circle_is_told_once_however_often_its_members_fail() -> None:
    story = circle()
    for ms in (1500, 2000):
        for actor, wanted in (("m1", 1), ("m2", 0)):
            story.attempts(ms, actor)
            story.meets(ms + 10, actor, [wanted])
    assert story.cycles() == BOTH


def test_who_goes_on_waits_no_longer() -> None:
    story = WaitStory()
    story.holds(1000, "m1", 0)
    story.holds(1000, "m2", 1)
    story.meets(1010, "m1", [1])
    story.attempts(1015, "m1")
    story.ends(1016, "m1")
    story.meets(1020, "m2", [0])
    assert story.cycles() == []


def test_members_of_other_groups_may_have_the_same_names() -> None:
    """A member of group h, by the name of one in the circle, goes through meanwhile."""
    story = WaitStory()
    story.holds(1000, "m1", 0)
    story.holds(1000, "m2", 1)
    story.meets(1010, "m1", [1])
    steps = ((900, Kind.MEMBER_STARTED), (910, Kind.REBALANCE_BEGAN), (910, Kind.ATTEMPT_BEGAN))
    for ms, kind in (*steps, (1015, Kind.REBALANCE_ENDED)):
        story.add(ms, "m8", kind, member="g_m1", group="h")
    story.meets(1020, "m2", [0])
    assert story.cycles() == BOTH


# -- circles that last --------------------------------------------------------------------------


@pytest.mark.parametrize("rested", [True, False])
def test_a_circle_that_stood_until_the_group_was_waited_for_has_lasted(rested: bool) -> None:
    """Whether the runner saw it rest or gave up waiting for that."""
    story = circle()
    if rested:
        story.rest(3000)
    else:
        story.rest_missed(3000, "m1: it rebalances")
    story.releases(3001, "m1", 0)
    story.rest(5000)
    assert story.cycles() == BOTH


def test_a_circle_that_is_broken_before_the_next_rest_is_none() -> None:
    """The rest of the moment in which it closed was asked for before."""
    story = circle()
    story.rest(1000)
    story.releases(2000, "m1", 0)
    story.rest(3000)
    assert story.cycles() == []


def test_where_no_rest_follows_it_must_last_to_the_end() -> None:
    story = circle()
    story.releases(9000, "m1", 0)
    assert story.cycles(until_us=9_001_999) == BOTH
    assert story.cycles(until_us=9_002_000) == []


def test_what_fails_after_the_end_closes_no_circle() -> None:
    story = circle(failed=1000)
    assert story.cycles(until_us=999_999) == []
    assert story.cycles(until_us=1_000_000) == BOTH
