"""O7, disagreement: members dealt from different views, and it did harm.

Looked at is what members say they decided (DECIDED) from the first rest until the phase `closing`. Views were
different where a member dealt (until its attempt ended) while another's attempt that had dealt from another view
was still under way, or dealt from an older list of members than another had before. Views differ where the lists
of members do, or the partitions. A view's digest holds the partitions of its member's own topics only, so where
two members subscribe to different topics only the lists (`members_zxid`) are compared. Members that deal
differently from one view are found by `contradiction`.

Attempts that overlap, one with the next, are a round. A round with different views is a violation if one of
these follows (`split_deals`): a *conflict*, an attempt that fails on an owner znode which the other member claimed
by its own deal; a *wrong claim*, a deal from the older list that succeeds in claiming what is another's by the
newer; a partition *left out*, which nobody owns when the round ends, and which no deal of the round wants. Members
may see different lists and deal the same shares: then nothing follows, and that is counted. Claim Z8 stands on this.
What a view held is taken from what its member had read in the attempt (`deals`). A member that deals from a list it
remembers from before has not seen another view; `contradiction` finds it. Where a decision names no list, or one that
its member had not read in the attempt, it is left out, and nothing is clean.

Witness: the two DECIDED and what followed: of a conflict the CREATED and the ATTEMPT_FAILED; of a wrong claim the
CREATED and the DECIDED of the partition's owner by the newer list; where something was left out, the DECIDED of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.deals import Apart, Deal, Round, apart, deals_in, rounds_of, undated
from rebalance_lab.checks.faults import clock_drifted, not_violated, violated
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.scope import NO_REST, changes_scope
from rebalance_lab.checks.split_deals import (
    Consequence,
    left_out_of,
    outdated,
    split_conflicts_of,
    unowned_at,
    wrong_claims_of,
)
from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


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


CHECK = Check(
    name="disagreement",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members dealt partitions from different views, and harm came of it.",
    plants=("old-lists",),
    judge=judge,
    applies_to=(ZK,),
    applies=_decides,
)
