"""O7, disagreement: members decided from different views, and it did harm.

The check looks at DECIDED events from the first rest until the phase `closing`. It compares the views of two decisions
if one was made while the other's attempt was still under way, or from an older list of members than the other had used
before. Views differ if their lists of members or their partitions differ. The digest of a view covers only the
partitions of the member's own topics, so of members with different topics only the lists (`members_zxid`) are compared.
`contradiction` finds members that decide differently from one view.

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
    Decision,
    DecisionPair,
    Round,
    decisions_in,
    differing_pairs,
    recorded_decisions,
    rounds_of,
    view_doubts,
)
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import Partition, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import NO_REST, judged_period
from rebalance_lab.checks.registry_state import membership_changes
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import grouped, owners_by_place


@dataclass(frozen=True, slots=True)
class _SplitRound:
    """A round with decisions from different views, and what followed. `unowned`: partitions without an owner at its
    end."""

    round: Round
    pairs: Sequence[DecisionPair]
    unowned: int
    left_out: Sequence[Consequence]
    wrong_claims: Sequence[Consequence]
    conflicts: Sequence[Consequence]

    @property
    def worst(self) -> Consequence | None:
        return next(iter((*self.left_out, *self.wrong_claims, *self.conflicts)), None)

    @property
    def length_us(self) -> int:
        return self.round.end_us - self.round.decisions[0].attempt.began.at_us


def judge(history: History) -> Finding:
    """Measures: `rounds`; `views_apart`, those with different views, and the `longest_us` of these; `count`, those of
    them that did harm; what followed: partitions `left_out`, `wrong_claims`, `conflicts`, and rounds after which
    `nothing` did. `stale_deals`: decisions in these rounds from a list that had changed in the registry before;
    `stale_succeeded`, those of them that made a wrong claim. `unowned`: partitions without an owner when such a round
    ended, whatever the reason."""
    period = judged_period(history)
    decisions = [] if period is None else [decision for decision in decisions_in(history, period) if decision.named]
    rounds = rounds_of(decisions)
    found = _split_rounds(history, rounds, decisions)
    harmful = [] if clock_drifted(history) else [one for one in found if one.worst is not None]
    older = {pair.stale.decided.id: pair.stale for one in found for pair in one.pairs if pair.stale is not None}
    stale = {decided for decided, decision in older.items() if outdated(history, decision)}
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
    why = "members that decided at the same time decided from the same view"
    if found:
        why = "members decided at the same time from different views, without harm"
    nothing = NO_REST if period is None else view_doubts(history, period)
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=bool(found))


def _violated(found: Sequence[_SplitRound], numbers: dict[str, int]) -> Finding:
    worst = max(found, key=lambda one: (len(one.left_out), len(one.wrong_claims), len(one.conflicts))).worst
    assert worst is not None
    one, other = worst.pair.former, worst.pair.later
    lists = f"lists of {one.members} and {other.members} members"
    what = "different partitions" if worst.pair.stale is None else lists
    why = f"{one.member} and {other.member} decided in one round from {what}; as a result, {worst.why}"
    return violated(why, (one.decided.id, other.decided.id, *worst.evidence), numbers)


def _split_rounds(history: History, rounds: Sequence[Round], decisions: Sequence[Decision]) -> list[_SplitRound]:
    """The rounds in which members decided from different views."""
    later = grouped(differing_pairs(decisions), lambda pair: pair.later.decided.id)
    found = []
    for each in rounds:
        pairs = [pair for decision in each.decisions for pair in later.get(decision.decided.id, ())]
        if pairs:
            found.append(
                _SplitRound(
                    each,
                    pairs,
                    len(unowned_at(history, each.decisions[0].group, each.end_us)),
                    left_out_of(history, each, pairs),
                    wrong_claims_of(history, pairs, decisions),
                    split_conflicts_of(history, pairs),
                )
            )
    return found


# -- what followed from different views ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Consequence:
    """What followed from a pair of decisions. `evidence`: ids of the events that show it, besides the two DECIDED."""

    pair: DecisionPair
    why: str
    evidence: tuple[EventId, ...]


def split_conflicts_of(history: History, pairs: Iterable[DecisionPair]) -> list[Consequence]:
    """Attempts that failed on an owner znode which the other member of the pair had claimed by its own decision:
    both wanted the partition."""
    found: dict[tuple[EventId, Partition], Consequence] = {}
    for pair in pairs:
        for decision, other in ((pair.former, pair.later), (pair.later, pair.former)):
            for attempt in decision.conflicts:
                failed = attempt.failed
                if failed is None or not met(history, decision.life, attempt):
                    continue
                for place in attempt.lost:
                    claim = (
                        _claimed(history, other, place) if place in decision.wants and place in other.wants else None
                    )
                    if claim is not None and _stood(claim, decision, failed):
                        why = f"{decision.member} found {place[0]}/{place[1]} claimed by {other.member}"
                        found.setdefault((failed.id, place), Consequence(pair, why, (claim.begin, failed.id)))
    return list(found.values())


def wrong_claims_of(
    history: History, pairs: Iterable[DecisionPair], decisions: Sequence[Decision]
) -> list[Consequence]:
    """Claims by the decision from the older list that succeeded, of partitions that another member wants by its
    decision from the newer list."""
    by_list = grouped(decisions, lambda decision: (decision.group, decision.view.zxid))
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
                    why = f"{stale.member} claimed {place[0]}/{place[1]}, {other.member}'s partition by the newer list"
                    evidence = (claim.begin, other.decided.id)
                    found.setdefault((stale.decided.id, place), Consequence(pair, why, evidence))
    return list(found.values())


def outdated(history: History, decision: Decision) -> bool:
    """Whether the list of members had surely changed before a decision was made from it."""
    return _changed(history, decision, decision.decided.at_us - TOLERANCE_US)


def _changed(history: History, decision: Decision, before_us: int) -> bool:
    """Whether the list of members that a decision was made from had changed in the registry before a moment."""
    return any(
        change.at_us < before_us and (change.zxid or 0) > decision.view.zxid
        for change in membership_changes(history)
        if change.member is not None and change.group == decision.group and change.kind is not Kind.CHANGED
    )


def left_out_of(history: History, each: Round, pairs: Sequence[DecisionPair]) -> list[Consequence]:
    """Partitions without an owner when the round ends that no member wants by its last decision in it. None unless all
    live members have decided in the round and the newest list that they used is still current: the partitions of a
    member that leaves have no owner until the others have noticed."""
    group, end_us = each.decisions[0].group, each.end_us
    if _changed(history, max(each.decisions, key=lambda decision: decision.view.zxid), end_us + TOLERANCE_US):
        return []
    last = {
        decision.actor: decision for decision in sorted(each.decisions, key=lambda decision: decision.decided.at_us)
    }
    for life in member_lives(history):
        gone = life.left_us is not None and life.left_us <= end_us
        if life.group == group and life.started.at_us <= end_us and not gone and life.actor not in last:
            return []
    wanted = {place for decision in last.values() for place in decision.wants}
    evidence = tuple(decision.decided.id for decision in last.values())
    return [
        Consequence(pairs[0], f"no member wants {topic}/{partition}, and no member owns it", evidence)
        for topic, partition in unowned_at(history, group, end_us)
        if (topic, partition) not in wanted
    ]


def unowned_at(history: History, group: str, moment_us: int) -> list[Partition]:
    """The partitions that the group had owned by a moment and that surely have no owner then."""
    return [
        (place[1], place[2])
        for place, rows in owners_by_place(history).items()
        if place[0] == group and rows[0].begin_us <= moment_us and not _owned_at(rows, moment_us)
    ]


def _claimed(history: History, decision: Decision, place: Partition) -> Interval | None:
    """The ownership in the registry that a decision led to: it began while the attempt was under way."""
    begin_us, end_us = decision.attempt.began.at_us - TOLERANCE_US, decision.end_us + TOLERANCE_US
    rows = owners_by_place(history).get((decision.group, *place), ())
    return next((one for one in rows if one.member == decision.member and begin_us <= one.begin_us <= end_us), None)


def _stood(claim: Interval, decision: Decision, failed: Event) -> bool:
    """Whether an owner znode existed at some time between a decision and the failure of its attempt."""
    return claim.begin_us <= failed.at_us + TOLERANCE_US and claim.end_us >= decision.decided.at_us - TOLERANCE_US


def _owned_at(rows: Sequence[Interval], moment_us: int) -> bool:
    """Whether any of a partition's ownerships, in order, covers a moment or comes within 2 ms of it."""
    first = bisect_right(rows, moment_us - TOLERANCE_US, key=lambda one: one.end_us)
    return first < len(rows) and rows[first].begin_us <= moment_us + TOLERANCE_US


CHECK = Check(
    name="disagreement",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members computed assignments from different views, and this did harm.",
    together=(
        "Each member is sure of its share. But they dealt from different lists, and nothing makes them agree, so their "
        "shares overlap or leave a gap."
    ),
    plants=(Planted("old-lists", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=recorded_decisions,
)
