"""Z7a, Z7c (O9), herd cost: a spaced change costs what the formulas say.

For each spaced change (`spaced_changes`) the check counts notifications, rebalances, reads and writes until its rest
and compares them exactly with the formulas (`change_costs`), in every world: notifications and rebalances for each
member, reads and writes for the group. The change must have triggered (`causes`) each rebalance for which a watch is to
fire. The formulas assume that no attempt fails. If attempts failed on others' claims (`conflicts`), `conflict_cost`
compares the change with the formulas; here the failed attempts must account for its excess, so that nothing else hides
among them. A conflict that the registry contradicts is a violation. If a change cannot be judged, or its reads and
writes cannot be compared, the trial is unknown.

Witness: the PHASE that announced the change, and the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.change_costs import OPERATIONS, ROUNDS, CostComparison, cost_comparisons
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.spaced_changes import announced
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `changes` judged; `count`, those that differ; `unjudged`; `conflicted`, changes with conflicts, and
    their failed attempts `retries`; `compared`, changes whose reads and writes were compared; the totals
    `notifications`, `rebalances`, `reads`, `writes`, and `bytes` of payload read if operations were recorded one by
    one; and for each change, by kind and number (`join_1_…`): `members` before it, `retries`, these numbers, and
    `expected_…` for those that a formula gives."""
    judged = [each for each in cost_comparisons(history) if each.doubt is None]
    wrong = [] if clock_drifted(history) else [each for each in judged if _wrong(each)]
    numbers = _measures(history, judged, len(wrong))
    if wrong:
        first = wrong[0]
        why = f"a {first.change.kind} in a group of {first.change.before} {_wrong(first)}"
        return violated(why, (first.change.phase.id, first.change.rest.id), numbers)
    why = f"{len(judged)} spaced changes cost what the formulas say"
    if numbers["conflicted"]:
        why += f", except {numbers['conflicted']} with conflicts (see conflict_cost)"
    return not_violated(history, why, numbers, vacuous=_unjudged(history, judged), across_layers=True)


def _wrong(comparison: CostComparison) -> str:
    """How a change differs from the formulas, in words; empty if it does not."""
    if comparison.contradicted is not None:
        return f"has a conflict that the registry contradicts: {comparison.contradicted}"
    differ = comparison.wrong_rounds() + comparison.wrong_operations()
    return f"cost {', '.join(differ)}" if differ else ""


def _measures(history: History, judged: Sequence[CostComparison], wrong: int) -> dict[str, int]:
    numbers = {
        "count": wrong,
        "changes": len(judged),
        "unjudged": len(announced(history)) - len(judged),
        "conflicted": sum(bool(each.conflicts) for each in judged),
        "retries": sum(len(each.conflicts) for each in judged),
        "compared": sum(each.incomparable is None and not each.conflicts for each in judged),
        **{name: sum(getattr(each.cost, name) for each in judged) for name in (*ROUNDS, *OPERATIONS)},
    }
    if judged and all(each.cost.bytes is not None for each in judged):
        numbers["bytes"] = sum(each.cost.bytes or 0 for each in judged)
    for each in judged:
        numbers |= each.measures()
    return numbers


def _unjudged(history: History, judged: Sequence[CostComparison]) -> str | None:
    """Why some change was not judged, or its reads and writes not compared; None if all were."""
    doubts = [each.doubt for each in cost_comparisons(history) if each.doubt is not None]
    if len(cost_comparisons(history)) < len(announced(history)):
        doubts.append("a spaced change did not come to rest")
    reasons = [each.incomparable for each in judged if each.incomparable is not None]
    if reasons:
        doubts.append(f"reads and writes of {len(reasons)} changes are not compared: {reasons[0]}")
    return "; ".join(doubts) or None


CHECK = Check(
    name="herd_cost",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A change of a group at rest did not cost the notifications, rebalances, reads and writes of the formulas.",
    together=(
        "Every member watches the same list and reads everything at the same moment, and no member shares what it has "
        "read. So the cost grows with the square of the group's size."
    ),
    statement="Each change causes as many reads, writes, notifications and rebalances as the formulas say",
    plants=(Planted("ignore-watch", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=announced,
)
