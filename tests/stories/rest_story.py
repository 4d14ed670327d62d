"""Two members at rest, and then a third that joins: stories about who reacts to it."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.history.events import EventId


def two_at_rest(**told: object) -> GroupStory:
    """m1 and m2 at rest at 1000 ms (runner/0)."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    for ms, actor in ((0, "m1"), (100, "m2")):
        story.joins(ms, actor)
        story.rebalances(ms + 10, ms + 50, actor)
    story.rest(1000)
    return story


def ended(story: GroupStory, ms: float = 10_000) -> GroupStory:
    story.rest(ms)
    story.phase(ms, "closing")
    return story


def third_joins(story: GroupStory, *rebalances: tuple[str, float], ms: float = 2000) -> EventId:
    """m3 registers; who hears of it and rebalances when."""
    change = story.joins(ms, "m3")
    for actor, at_ms in rebalances:
        story.reacts(at_ms, at_ms + 20, actor)
    return change
