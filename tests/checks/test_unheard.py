"""Notifications that melt together: who is excused, and who is not (Z7a)."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from test_check_herd_cost import one_at_rest

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

IDS = "/consumers/g/ids"
DOUBT = f"g_m1 had not set its watch of {IDS} again"


def handles(story: GroupStory, ms: float) -> None:
    story.member(ms, "m1", Kind.NOTIFICATION_HANDLED, detail={"path": IDS, "of": 0})


def sets_watch(story: GroupStory, ms: float, *, zxid: int) -> None:
    story.asks(ms, "m1", "children", IDS, watch=True, zxid=zxid)


def unnotified(story: GroupStory) -> Finding:
    """m2 joins (the registry's zxid is 100), and m1 is not notified."""
    story.announces(1000, "one joins", change="join", members=1)
    story.comes(1090, "m2")
    while story._zxid < 99:
        story.registry(1095, Kind.FAILED, None, "0xf")
    story.registers(1100, "m2")
    story.rebalances(1120, 1200, "m2")
    story.rest(3000)
    return CHECKS["herd_cost"].judge(story.history())


def after_a_notification(world: str = "processes") -> GroupStory:
    story = one_at_rest(world=world)
    sets_watch(story, 100, zxid=4)
    story.told(500, "m1")
    return story


@pytest.mark.parametrize("world", ["simulated", "processes"])
def test_a_watch_that_was_not_set_again_excuses_by_name(world: str) -> None:
    finding = unnotified(after_a_notification(world))
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, DOUBT)


def test_a_watch_that_was_set_again_before_the_change_must_fire() -> None:
    story = after_a_notification()
    sets_watch(story, 900, zxid=99)
    assert unnotified(story).outcome is Outcome.VIOLATED


def test_a_read_that_saw_the_change_set_the_watch_too_late() -> None:
    story = after_a_notification()
    sets_watch(story, 1105, zxid=100)
    assert unnotified(story).why == DOUBT


def test_a_read_before_the_watch_fired_does_not_set_it_again() -> None:
    story = one_at_rest(world="processes")
    sets_watch(story, 100, zxid=4)
    sets_watch(story, 200, zxid=5)
    story.told(500, "m1")
    assert unnotified(story).why == DOUBT


def test_a_watch_that_never_fired_before_must_fire() -> None:
    story = one_at_rest(world="processes")
    sets_watch(story, 100, zxid=4)
    assert unnotified(story).outcome is Outcome.VIOLATED


def test_a_member_that_handled_a_notification_and_sets_no_watch_is_not_excused() -> None:
    story = after_a_notification()
    handles(story, 600)
    assert unnotified(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("ms", "outcome"), [(1097.9, Outcome.VIOLATED), (1098, Outcome.UNKNOWN)])
def test_with_counted_operations_the_end_of_the_notification_tells(ms: float, outcome: Outcome) -> None:
    story = one_at_rest(world="processes")
    story.counted(100, "m1", children=1)
    story.told(500, "m1")
    handles(story, ms)
    assert unnotified(story).outcome is outcome


def test_a_notification_of_another_path_excuses_nobody() -> None:
    story = one_at_rest(world="processes")
    sets_watch(story, 100, zxid=4)
    story.told(500, "m1", "/brokers/topics/t")
    assert unnotified(story).outcome is Outcome.VIOLATED
