"""What follows where members dealt from different views: conflicts, wrong claims, partitions left to nobody.

A conflict or a claim is laid to the different views only where both members' deals have a part in it: an owner
that has not released yet makes others fail too, whatever list they dealt from. A conflict must be witnessed by the
registry (`conflicts`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.conflicts import met
from rebalance_lab.checks.deals import Apart, Deal, Partition, Round, partitions_in
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.groups import membership_changes
from rebalance_lab.checks.lives import lives
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import once, owners


@dataclass(frozen=True, slots=True)
class Consequence:
    """`why`: in words. `evidence`: ids of the events that show it, beside the two DECIDED of the `pair`."""

    pair: Apart
    why: str
    evidence: tuple[EventId, ...]


def split_conflicts_of(history: History, pairs: Iterable[Apart]) -> list[Consequence]:
    """Attempts that failed on an owner znode which the other member of the pair had claimed by its own deal:
    both wanted the partition."""
    found: dict[tuple[EventId, Partition], Consequence] = {}
    for pair in pairs:
        for deal, other in ((pair.former, pair.later), (pair.later, pair.former)):
            for attempt in deal.conflicts:
                failed = attempt.failed
                if failed is None or not met(history, deal.life, attempt):
                    continue
                for place in partitions_in(failed.of("conflicts")):
                    claim = _claimed(history, other, place) if place in deal.wants and place in other.wants else None
                    if claim is not None and _stood(claim, deal, failed):
                        why = f"{deal.member} found {place[0]}/{place[1]} claimed by {other.member}"
                        found.setdefault((failed.id, place), Consequence(pair, why, (claim.begin, failed.id)))
    return list(found.values())


def wrong_claims_of(history: History, pairs: Iterable[Apart], deals: Sequence[Deal]) -> list[Consequence]:
    """Claims of a deal from the older list that succeeded, of partitions that another member's deal from the
    newer list wants."""
    by_list: dict[tuple[str, int], list[Deal]] = {}
    for deal in deals:
        by_list.setdefault((deal.group, deal.view.zxid), []).append(deal)
    found: dict[tuple[EventId, Partition], Consequence] = {}
    for pair in pairs:
        stale = pair.stale
        if stale is None or not stale.succeeded:
            continue
        newer = pair.later if stale is pair.former else pair.former
        for other in by_list[newer.group, newer.view.zxid]:
            if other.actor == stale.actor:
                continue
            for place in (each for each in stale.wants if each in other.wants):  # in an order of their own
                claim = _claimed(history, stale, place)
                if claim is not None:
                    why = f"{stale.member} claimed {place[0]}/{place[1]}, which is {other.member}'s by the newer list"
                    evidence = (claim.begin, other.decided.id)
                    found.setdefault((stale.decided.id, place), Consequence(pair, why, evidence))
    return list(found.values())


def outdated(history: History, deal: Deal) -> bool:
    """Whether the list of members that a deal was made from had changed before it was decided, beyond doubt."""
    return _changed(history, deal, deal.decided.at_us - TOLERANCE_US)


def _changed(history: History, deal: Deal, before_us: int) -> bool:
    """Whether the registry changed the list of members that a deal was made from before a moment."""
    return any(
        change.at_us < before_us and (change.zxid or 0) > deal.view.zxid
        for change in membership_changes(history)
        if change.member is not None and change.group == deal.group and change.kind is not Kind.CHANGED
    )


def left_out_of(history: History, each: Round, pairs: Sequence[Apart]) -> list[Consequence]:
    """Partitions that nobody owns when the round ends, and that no member's last deal in it wants. Nothing is
    said unless all members that are there then have dealt in the round, and the newest list they dealt from is
    still the group's: what a member leaves behind is nobody's until the others have heard of it."""
    group, end_us = each.deals[0].group, each.end_us
    if _changed(history, max(each.deals, key=lambda deal: deal.view.zxid), end_us + TOLERANCE_US):
        return []
    last = {deal.actor: deal for deal in sorted(each.deals, key=lambda deal: deal.decided.at_us)}
    for life in lives(history):
        gone = life.left_us is not None and life.left_us <= end_us
        if life.group == group and life.started.at_us <= end_us and not gone and life.actor not in last:
            return []
    wanted = {place for deal in last.values() for place in deal.wants}
    evidence = tuple(deal.decided.id for deal in last.values())
    return [
        Consequence(pairs[0], f"no member wants {topic}/{partition}, and nobody owns it", evidence)
        for topic, partition in unowned_at(history, group, end_us)
        if (topic, partition) not in wanted
    ]


def unowned_at(history: History, group: str, moment_us: int) -> list[Partition]:
    """The partitions that the group has owned by a moment and that have no owner then, beyond doubt."""
    return [
        (place[1], place[2])
        for place, rows in _owners_by_place(history).items()
        if place[0] == group and rows[0].begin_us <= moment_us and not _owned_at(rows, moment_us)
    ]


def _claimed(history: History, deal: Deal, place: Partition) -> Interval | None:
    """The ownership that a deal led to: the registry's, begun while the deal was under way."""
    begin_us, end_us = deal.attempt.began.at_us - TOLERANCE_US, deal.end_us + TOLERANCE_US
    rows = _owners_by_place(history).get((deal.group, *place), ())
    return next((one for one in rows if one.member == deal.member and begin_us <= one.begin_us <= end_us), None)


def _stood(claim: Interval, deal: Deal, failed: Event) -> bool:
    """Whether an owner znode stood at some time between a decision and the failure to follow it."""
    return claim.begin_us <= failed.at_us + TOLERANCE_US and claim.end_us >= deal.decided.at_us - TOLERANCE_US


def _owned_at(rows: Sequence[Interval], moment_us: int) -> bool:
    """Whether any of a partition's owners, in order, was one within 2 ms of a moment."""
    first = bisect_right(rows, moment_us - TOLERANCE_US, key=lambda one: one.end_us)
    return first < len(rows) and rows[first].begin_us <= moment_us + TOLERANCE_US


@once
def _owners_by_place(history: History) -> dict[tuple[str, str, int], list[Interval]]:
    found: dict[tuple[str, str, int], list[Interval]] = {}
    for one in owners(history):
        found.setdefault(one.place, []).append(one)
    return found
