"""Z7c, conflict cost: what a spaced change costs above the formulas when members meet each other's claims.

The statement tested is the plain formula (`herd_formulas`) for every spaced change, with conflicts or
without: no change costs more reads or writes than it. A claim that meets the owner znode of a member
which has not released yet fails the attempt, and the attempt is made again after a back-off. So the
statement is violated wherever fetchers take long enough to stop; how much conflicts added is measured.

Witness: the PHASE that announced the change that added most reads, and the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.change_costs import Bill, bills
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.model import ZK, About, Check, Finding
from rebalance_lab.checks.spaced_changes import announced
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `changes` compared, `count` of those above the formulas, `conflicted`, with conflicts;
    `retries`, failed attempts; `added_reads`, `added_writes` by all of them, `most_percent`, the largest
    share that reads or writes of one change were above the formula; `accounted_reads`,
    `accounted_writes`, what the failed attempts cost by protocol (`conflicts`)."""
    judged = [bill for bill in bills(history) if bill.doubt is None and bill.silent is None]
    above = [] if clock_drifted(history) else [bill for bill in judged if _above(bill)]
    numbers = {
        "count": len(above),
        "changes": len(judged),
        "conflicted": sum(bool(bill.conflicts) for bill in judged),
        "retries": sum(len(bill.conflicts) for bill in judged),
        "added_reads": sum(bill.added_reads or 0 for bill in judged),
        "added_writes": sum(bill.added_writes or 0 for bill in judged),
        "accounted_reads": sum(bill.accounted_reads for bill in judged),
        "accounted_writes": sum(bill.accounted_writes for bill in judged),
        "most_percent": max((bill.added_percent for bill in judged), default=0),
    }
    if above:
        return _violated(max(above, key=lambda bill: (bill.added_reads or 0, bill.added_writes or 0)), numbers)
    return not_violated(
        history,
        f"none of {len(judged)} spaced changes cost more reads or writes than the formulas say",
        numbers,
        vacuous=_nothing(history, judged),
        across_layers=True,
    )


def _above(bill: Bill) -> bool:
    return (bill.added_reads or 0) > 0 or (bill.added_writes or 0) > 0


def _violated(bill: Bill, numbers: dict[str, int]) -> Finding:
    change = bill.change
    why = (
        f"a {change.kind} in a group of {change.before}, in which {len(bill.conflicts)} attempts met conflicts, cost "
        f"{bill.added_reads} reads and {bill.added_writes} writes above the formulas ({bill.added_percent} %); "
        f"the failed attempts account for {bill.accounted_reads} and {bill.accounted_writes}"
    )
    return violated(why, (change.phase.id, change.rest.id), numbers)


def _nothing(history: History, judged: Sequence[Bill]) -> str | None:
    """Why the trial shows nothing; None where every announced change was compared."""
    if len(judged) == len(announced(history)):
        return None
    return next((bill.doubt or bill.silent for bill in bills(history) if bill not in judged), None) or (
        "a spaced change did not come to rest"
    )


def _announced(history: History) -> bool:
    return bool(announced(history))


CHECK = Check(
    name="conflict_cost",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A change of a group at rest cost more reads or writes than the formulas say, including conflicts.",
    plants=("rebalance-unasked",),
    judge=judge,
    applies_to=(ZK,),
    about=About.STATEMENT,
    applies=_announced,
)
