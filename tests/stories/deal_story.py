"""Histories of deals: members that settle, and then decide from given views (O7, claim Z8)."""

from __future__ import annotations

from group_story import GroupStory, Wants, pairs

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.events import EventId, Kind

NONE = {
    "count": 0,
    "views_apart": 0,
    "rounds": 0,
    "longest_us": 0,
    "unowned": 0,
    "left_out": 0,
    "wrong_claims": 0,
    "conflicts": 0,
    "nothing": 0,
    "stale_deals": 0,
    "stale_succeeded": 0,
}


def judge(story: GroupStory, end_ms: float = 9_000) -> Finding:
    story.elsewhere(end_ms, up_to=13)  # the highest zxid that a decision of a test names
    story.rest(end_ms)
    return CHECKS["disagreement"].judge(story.history())


def settled(members: int = 2, partitions: int = 2, **streams: dict[str, int]) -> GroupStory:
    """m1, m2, … own a partition each, and the group rests at 1 s. `streams`: by actor."""
    story = GroupStory()
    story.topic(0, "t", partitions)
    for number in range(1, members + 1):
        actor = f"m{number}"
        story.joins(10 * number, actor, streams=streams.get(actor, {"t": 1}))
        story.claims(10 * number + 5, actor, number - 1)
    story.rest(1_000)
    return story


def deals(
    story: GroupStory,
    actor: str,
    began_ms: float,
    decided_ms: float,
    ended_ms: float | None,
    *,
    zxid: int = 10,
    view: str = "aa",
    members: int = 2,
    wants: Wants = (),
    fails: str = "",
    conflicts: Wants = (),
) -> EventId:
    """One rebalance of one attempt; returns its DECIDED. `fails`: the reason, if it does, for these `conflicts`, which
    ZooKeeper witnesses. Operations are only counted, so the decision's own words are taken."""
    story.begins(began_ms, actor)
    story.counted(began_ms, actor, children=1)
    detail = {"members": members, "members_zxid": zxid, "view": view, "wants": pairs(wants)}
    decided = story.member(decided_ms, actor, Kind.DECIDED, detail=detail)
    if ended_ms is not None:
        if fails:
            for _ in conflicts:
                story.refused(ended_ms, actor)
            story.fails(ended_ms, actor, fails, conflicts)
        else:
            story.ends(ended_ms, actor)
    return decided
