"""O7c, contradiction: members dealt from one view, and their shares do not fit together.

Looked at is what members say they decided (DECIDED) from the first rest until the phase `closing`. Of members that
dealt from one view, two want the same partition, in any of their deals from it, or all of them together leave one of
their topics' partitions out by their last deals from it (mixed assignors: S5). Members that saw another view play no
part here: see `disagreement`. A member's view is what it had read in the attempt (`deals`); a member that deals from a
list it remembers from before therefore contradicts the others. Where a decision names no list of members, or one that
its member had not read in the attempt, nothing is clean.

Witness: the two DECIDED; where something was left out, the DECIDED of all members of the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.decisions import Deal, Partition, View, deals_in, undated
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.phases import NO_REST, changes_scope
from rebalance_lab.checks.registry_state import partitions_of, topic_changes
from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


@dataclass(frozen=True, slots=True)
class _Contradiction:
    why: str
    witness: tuple[EventId, ...]


def judge(history: History) -> Finding:
    """Measures: `views` that members dealt from; `count`, of those from which they dealt against each other."""
    scope = changes_scope(history)
    by_view: dict[tuple[str, View], list[Deal]] = {}
    for deal in [] if scope is None else deals_in(history, scope):
        by_view.setdefault((deal.group, deal.view), []).append(deal)
    found = [odd for same in by_view.values() if (odd := _odd(history, same)) is not None]
    numbers = {"count": len(found), "views": len(by_view)}
    if found:
        return violated(found[0].why, found[0].witness, numbers)
    why = "the shares of members that dealt from one view fitted together"
    return not_violated(history, why, numbers, vacuous=NO_REST if scope is None else undated(history, scope))


def _odd(history: History, same: Sequence[Deal]) -> _Contradiction | None:
    latest = {deal.member: deal for deal in same}
    return _both_want(same) or _left_out(history, list(latest.values()))


def _both_want(same: Sequence[Deal]) -> _Contradiction | None:
    first: dict[Partition, Deal] = {}
    for deal in same:
        for wanted in deal.wants:
            other = first.setdefault(wanted, deal)
            if other.member != deal.member:
                why = f"{other.member} and {deal.member} dealt from one view, and both want {wanted[0]}/{wanted[1]}"
                return _Contradiction(why, (other.decided.id, deal.decided.id))
    return None


def _left_out(history: History, same: Sequence[Deal]) -> _Contradiction | None:
    """What no member wants, where all of the view have decided."""
    if len(same) != same[0].members:
        return None
    wanted = {each for deal in same for each in deal.wants}
    seen = same[0].partitions
    left = [each for each in (_partitions(history, same) if seen is None else seen) if each not in wanted]
    if not left:
        return None
    topic, partition = left[0]
    why = f"all {len(same)} members dealt from one view, and none of them wants {topic}/{partition}"
    return _Contradiction(why, tuple(deal.decided.id for deal in same))


def _partitions(history: History, same: Sequence[Deal]) -> Sequence[Partition]:
    """The partitions of a view whose reads are not recorded: those that its topics had some time before the first
    attempt that dealt from it (a filter names no topic)."""
    topics = same[0].view.subscription.split()
    before_us = min(deal.attempt.began.at_us for deal in same) - TOLERANCE_US
    changes = [(topic, event) for topic, event in topic_changes(history) if topic in topics and event.at_us < before_us]
    return [(topic, partition) for topic, event in sorted(dict(changes).items()) for partition in partitions_of(event)]


def _decides(history: History) -> bool:
    return bool(events_of(history, Kind.DECIDED))


CHECK = Check(
    name="contradiction",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members dealt partitions from the same view, but their results contradict each other.",
    plants=("never-claim-last", "deal-from-before"),
    judge=judge,
    applies_to=(ZK,),
    applies=_decides,
)
