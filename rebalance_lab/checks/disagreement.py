"""O7, disagreement: members decided from different views, and it did harm.

The check looks at DECIDED events from the first rest until the phase `closing`. Two views differ if one member decided
while another's attempt, decided from another view, was still under way; or if it decided from an older list of members
than another had used before. Views differ if their lists of members or their partitions differ. The digest of a view
covers only the partitions of the member's own topics, so of members with different topics only the lists
(`members_zxid`) are compared. `contradiction` finds members that decide differently from one view.

Attempts that overlap, one with the next, form a round. A round with different views is a violation if one of these
follows:

- a *conflict*: an attempt fails on an owner znode which the other member claimed by its own decision. The registry must
  witness it (`conflicts`), and both must have wanted the partition: an owner that has not released yet makes others
  fail too, whatever list they used;
- a *wrong claim*: a decision from the older list succeeds in claiming what belongs to another member by the newer list;
- a partition *left out*: no member owns it when the round ends, and no decision of the round wants it.

Members may see different lists and compute the same assignment. Then nothing follows, and this is counted. Claim Z8
depends on it. A member that decides from a list that it remembers has not seen another view: `contradiction` finds it.
If a decision names no list, or one that its member had not read in the attempt, the check leaves it out and is unknown.

Witness: the two DECIDED and what followed: of a conflict the CREATED and the ATTEMPT_FAILED; of a wrong claim the
CREATED and the DECIDED of the partition's owner by the newer list; of a partition left out the DECIDED of all members.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.conflicts import met
from rebalance_lab.checks.decisions import (
    Apart,
    Deal,
    Partition,
    Round,
    apart,
    deals_in,
    partitions_in,
    rounds_of,
    undated,
)
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.members import lives
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.phases import NO_REST, changes_scope
from rebalance_lab.checks.registry_state import membership_changes
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import events_of, once, owners


@dataclass(frozen=True, slots=True)
class _Apart:
    """A round in which deals were `apart`, and what followed. `unowned`: partitions without an owner at its end."""

    round: Round
    apart: Sequence[Apart]
    unowned: int
    left_out: Sequence[Consequence]
    wrong_claims: Sequence[Consequence]
    conflicts: Sequence[Consequence]

    @property
    def worst(self) -> Consequence | None:
        return next(iter((*self.left_out, *self.wrong_claims, *self.conflicts)), None)

    @property
    def length_us(self) -> int:
        return self.round.end_us - self.round.deals[0].attempt.began.at_us


def judge(history: History) -> Finding:
    """Measures: `count`, of rounds with different views that something followed;
    `rounds` looked at, `views_apart`: those with different views, and `longest_us` of these; what followed:
    partitions `left_out`, `wrong_claims`, `conflicts`, and rounds after which `nothing` did. `stale_deals`: of these
    rounds, made from a list that the registry had changed before they were decided; `stale_succeeded` of them made
    a wrong claim. `unowned`: partitions without an owner when such a round ended, whatever the reason."""
    scope = changes_scope(history)
    deals = [] if scope is None else [deal for deal in deals_in(history, scope) if deal.named]
    rounds = rounds_of(deals)
    found = _rounds_apart(history, rounds, deals)
    harmful = [] if clock_drifted(history) else [one for one in found if one.worst is not None]
    older = {pair.stale.decided.id: pair.stale for one in found for pair in one.apart if pair.stale is not None}
    stale = {decided for decided, deal in older.items() if outdated(history, deal)}
    wrong = {each.pair.stale.decided.id for one in found for each in one.wrong_claims if each.pair.stale is not None}
    numbers = {
        "count": len(harmful),
        "views_apart": len(found),
        "rounds": len(rounds),
        "longest_us": max((one.length_us for one in found), default=0),
        "unowned": sum(one.unowned for one in found),
        "left_out": sum(len(one.left_out) for one in found),
        "wrong_claims": sum(len(one.wrong_claims) for one in found),
        "conflicts": sum(len(one.conflicts) for one in found),
        "nothing": sum(one.worst is None for one in found),
        "stale_deals": len(stale),
        "stale_succeeded": len(stale & wrong),
    }
    if harmful:
        return _violated(harmful, numbers)
    why = "members that dealt at once dealt from one view"
    if found:
        why = "members dealt at once from different views, and nothing followed"
    nothing = NO_REST if scope is None else undated(history, scope)
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=bool(found))


def _violated(found: Sequence[_Apart], numbers: dict[str, int]) -> Finding:
    worst = max(found, key=lambda one: (len(one.left_out), len(one.wrong_claims), len(one.conflicts))).worst
    assert worst is not None
    one, other = worst.pair.former, worst.pair.later
    lists = f"lists of {one.members} and {other.members} members"
    what = "different partitions" if worst.pair.stale is None else lists
    why = f"{one.member} and {other.member} dealt in one round from {what}; what followed: {worst.why}"
    return violated(why, (one.decided.id, other.decided.id, *worst.evidence), numbers)


def _rounds_apart(history: History, rounds: Sequence[Round], deals: Sequence[Deal]) -> list[_Apart]:
    """The rounds in which a member dealt from another view than somebody else had."""
    later: dict[EventId, list[Apart]] = {}
    for pair in apart(deals):
        later.setdefault(pair.later.decided.id, []).append(pair)
    found = []
    for each in rounds:
        pairs = [pair for deal in each.deals for pair in later.get(deal.decided.id, ())]
        if pairs:
            found.append(
                _Apart(
                    each,
                    pairs,
                    len(unowned_at(history, each.deals[0].group, each.end_us)),
                    left_out_of(history, each, pairs),
                    wrong_claims_of(history, pairs, deals),
                    split_conflicts_of(history, pairs),
                )
            )
    return found


def _decides(history: History) -> bool:
    return bool(events_of(history, Kind.DECIDED))


# -- what followed from different views ----------------------------------------------------------


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


CHECK = Check(
    name="disagreement",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members dealt partitions from different views, and harm came of it.",
    plants=("old-lists",),
    judge=judge,
    applies_to=(ZK,),
    applies=_decides,
)
