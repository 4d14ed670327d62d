"""Z7c, conflict cost: what a spaced change costs above the formulas when members meet each other's claims.

The check tests the plain formula (`change_costs`) for every spaced change, with conflicts or without: no change costs
more reads or writes. A claim that meets the owner znode of a member that has not released yet fails the attempt, and
the member makes another attempt after a back-off. So the statement is violated wherever fetchers take long enough to
stop; the check measures how much conflicts added.

Witness: the PHASE that announced the change with the most added reads, and the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.change_costs import CostComparison, cost_comparisons
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.spaced_changes import announced
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `changes` compared; `count`, those above the formulas; `conflicted`, those with conflicts; `retries`,
    failed attempts; `added_reads`, `added_writes` by all changes; `most_percent`, the largest share by which reads or
    writes of one change exceeded the formula; `accounted_reads`, `accounted_writes`, what the failed attempts cost by
    protocol (`conflicts`)."""
    judged = [each for each in cost_comparisons(history) if each.doubt is None and each.incomparable is None]
    above = [each for each in judged if (each.added_reads or 0) > 0 or (each.added_writes or 0) > 0]
    if clock_drifted(history):
        above = []
    numbers = {
        "count": len(above),
        "changes": len(judged),
        "conflicted": sum(bool(each.conflicts) for each in judged),
        "retries": sum(len(each.conflicts) for each in judged),
        "added_reads": sum(each.added_reads or 0 for each in judged),
        "added_writes": sum(each.added_writes or 0 for each in judged),
        "accounted_reads": sum(each.accounted_reads for each in judged),
        "accounted_writes": sum(each.accounted_writes for each in judged),
        "most_percent": max((each.added_percent for each in judged), default=0),
    }
    if above:
        return _violated(max(above, key=lambda each: (each.added_reads or 0, each.added_writes or 0)), numbers)
    why = f"none of {len(judged)} spaced changes cost more reads or writes than the formulas say"
    return not_violated(history, why, numbers, vacuous=_not_compared(history, judged), across_layers=True)


def _violated(worst: CostComparison, numbers: dict[str, int]) -> Finding:
    change = worst.change
    why = (
        f"a {change.kind} in a group of {change.before} cost {worst.added_reads} reads and {worst.added_writes} writes "
        f"more than the formulas say ({worst.added_percent} %); {len(worst.conflicts)} attempts met conflicts and "
        f"account for {worst.accounted_reads} reads and {worst.accounted_writes} writes"
    )
    return violated(why, (change.phase.id, change.rest.id), numbers)


def _not_compared(history: History, judged: Sequence[CostComparison]) -> str | None:
    """Why an announced change was not compared; None if all were."""
    if len(judged) == len(announced(history)):
        return None
    reasons = (each.doubt or each.incomparable for each in cost_comparisons(history) if each not in judged)
    return next(reasons, None) or "a spaced change did not come to rest"


CHECK = Check(
    name="conflict_cost",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A change of a group at rest cost more reads or writes than the formulas say, including conflicts.",
    together=(
        "A member that was not fetching claims at once, and meets owner znodes of members whose fetchers are still "
        "stopping. Its attempt fails, and everything is read again."
    ),
    statement="No change costs more reads or writes than the formulas say, even where claims conflict",
    plants=(Planted("rebalance-unasked", "walkthrough", settings={}),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=announced,
)
