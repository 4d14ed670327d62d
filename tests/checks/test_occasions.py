"""Where nobody gives anything up, though members come or go, the order in a rebalance (Z5a) is not tested."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Outcome


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
    why = "no attempt gave up a partition and claimed one, although /consumers/g/ids/g_m2 came or went"
    assert finding.outcome is (Outcome.CLEAN if tested else Outcome.UNKNOWN)
    assert (finding.why == why) is not tested
