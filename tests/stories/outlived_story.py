"""Histories of zombies: a member that outlives its session, and its successor (Z10)."""

from __future__ import annotations

from typing import Any

from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.events import EventId

NONE = {
    "count": 0,
    "zombies": 0,
    "longest_us": 0,
    "longest_belief_us": 0,
    "total_belief_us": 0,
    "total_effect_us": 0,
}


def judge(story: GroupStory) -> Finding:
    story.rest(9_000)
    return CHECKS["zombie_overlap"].judge(story.history())


def two(**told: Any) -> GroupStory:
    """m1 and m2; m1 believes that it owns t/0."""
    story = GroupStory(**told)
    story.comes(10, "m1")  # m1/0, m1/1
    story.comes(20, "m2")  # m2/0, m2/1
    story.owned(100, "m1")  # m1/2
    return story


def works(story: GroupStory, actor: str, begin_ms: float, end_ms: float, partition: int = 0) -> EventId:
    """Works from one moment to another; returns the first report."""
    times = [begin_ms, *range(int(begin_ms) + 100, int(end_ms), 100), end_ms]
    story.worked(actor, times[0], partition=partition)
    first = story.events[-1].id
    story.worked(actor, *times[1:], partition=partition)
    return first


def paused(story: GroupStory) -> tuple[EventId, EventId]:
    """m1 is paused from 1 s to 5 s; its session ends at 3 s. The pause, and the session's end."""
    began = story.paused(1_000, 5_000, "m1")
    return began, story.session_closed(3_000, "0x1")


def zombie_of(story: GroupStory) -> EventId:
    """m2 works beside m1, whose session has ended; returns m1's first report beside it."""
    works(story, "m2", 3_100, 5_000)
    return works(story, "m1", 3_200, 4_000)
