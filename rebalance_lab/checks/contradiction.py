"""O7c, contradiction: members decided from the same view, and their assignments do not fit together.

The check looks at DECIDED events from the first rest until the phase `closing`. It compares members that decided from
the same view. Their assignments do not fit together if two of them want the same partition (in any of their decisions
from that view), or if none of them wants some partition of their topics (in their last decisions from it). Mixed
assignors cause this (S5). Members with other views are left to `disagreement`.
A member's view is what it had read in the attempt (`decisions`), so a member that decides from a list it remembers
contradicts the others. The check is unknown if a decision names no list of members, or one that its member had not read
in the attempt.

Witness: the two DECIDED; if a partition was left out, the DECIDED of all members of the view.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.decisions import Decision, decisions_in, recorded_decisions, view_doubts
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.members import Partition
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import NO_REST, judged_period
from rebalance_lab.checks.registry_state import partitions_of, topic_changes
from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import grouped

#: Why decisions do not fit together, and the witness.
_Contradiction = tuple[str, tuple[EventId, ...]]


def judge(history: History) -> Finding:
    """Measures: `views` that members decided from; `count`, those of them whose decisions contradict each other."""
    period = judged_period(history)
    decisions = [] if period is None else decisions_in(history, period)
    by_view = grouped(decisions, lambda decision: (decision.group, decision.view))
    odds = (_both_want(same) or _left_out(history, same) for same in by_view.values())
    found = [odd for odd in odds if odd is not None]
    numbers = {"count": len(found), "views": len(by_view)}
    if found:
        return violated(*found[0], numbers)
    why = "members that decided from the same view computed assignments that fit together"
    return not_violated(history, why, numbers, vacuous=NO_REST if period is None else view_doubts(history, period))


def _both_want(same: Sequence[Decision]) -> _Contradiction | None:
    first: dict[Partition, Decision] = {}
    for decision in same:
        for wanted in decision.wants:
            other = first.setdefault(wanted, decision)
            if other.member != decision.member:
                why = f"{other.member} and {decision.member} decided from the same view, and both want "
                why += f"{wanted[0]}/{wanted[1]}"
                return why, (other.decided.id, decision.decided.id)
    return None


def _left_out(history: History, same: Sequence[Decision]) -> _Contradiction | None:
    """A partition that no member wants by its last decision, if all members of the view have decided."""
    same = list({decision.member: decision for decision in same}.values())
    if len(same) != same[0].members:
        return None
    wanted = {each for decision in same for each in decision.wants}
    seen = same[0].partitions
    left = [each for each in (_partitions(history, same) if seen is None else seen) if each not in wanted]
    if not left:
        return None
    topic, partition = left[0]
    why = f"all {len(same)} members decided from the same view, and none of them wants {topic}/{partition}"
    return why, tuple(decision.decided.id for decision in same)


def _partitions(history: History, same: Sequence[Decision]) -> Sequence[Partition]:
    """The partitions of a view whose reads are not recorded: those that its topics had well before the first attempt
    that decided from it (a filter names no topic)."""
    topics = same[0].view.subscription.split()
    before_us = min(decision.attempt.began.at_us for decision in same) - TOLERANCE_US
    changes = [(topic, event) for topic, event in topic_changes(history) if topic in topics and event.at_us < before_us]
    return [(topic, partition) for topic, event in sorted(dict(changes).items()) for partition in partitions_of(event)]


CHECK = Check(
    name="contradiction",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members computed assignments from the same view, but the results contradict each other.",
    together=(
        "The members dealt from the same list, but by different rules. Each is sure of its share, and the shares "
        "overlap or leave a gap. No retry mends that."
    ),
    plants=(Planted("never-claim-last", "leave"), Planted("deal-from-before", "walkthrough")),
    judge=judge,
    applies_to=(ZK,),
    looks_at=recorded_decisions,
)
