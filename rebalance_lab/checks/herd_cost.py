"""Z7a, Z7c (O9), herd cost: a spaced change costs what the formulas say.

For each spaced change (`spaced_changes`) notifications, rebalances, reads and writes are counted until
its rest and compared with the formulas (`herd_formulas`), in every world exactly: notifications and
rebalances member by member, reads and writes of the group. The change must have set off (`causes`) each
rebalance for which a watch is to fire. The formulas know no failed attempt: a
change in which attempts failed on others' claims (`conflicts`) is left to `conflict_cost`, which
holds it against them; here its excess must be what the failed attempts account for, so that nothing
else hides among them. A conflict that the registry contradicts is a violation. A change that cannot be
judged, or whose reads and writes cannot be compared, leaves the trial unknown.

Witness: the PHASE that announced the change, and the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.change_costs import OPERATIONS, ROUNDS, Bill, bills
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.model import ZK, About, Check, Finding
from rebalance_lab.checks.spaced_changes import announced
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `changes` judged, `count` of those that differ, `unjudged`; `conflicted`, changes with
    conflicts, and their failed attempts `retries`; `compared`, changes whose reads and writes were; the
    totals `notifications`, `rebalances`, `reads`, `writes`, and `bytes` of payload read where operations
    were recorded one by one; and for each change, by kind and number (`join_1_…`): `members` before it,
    `retries`, these numbers, and `expected_…` of those that a formula gives."""
    judged = [bill for bill in bills(history) if bill.doubt is None]
    wrong = [] if clock_drifted(history) else [bill for bill in judged if _wrong(bill)]
    numbers = _measures(history, judged, len(wrong))
    if wrong:
        first = wrong[0]
        why = f"a {first.change.kind} in a group of {first.change.before} {_wrong(first)}"
        return violated(why, (first.change.phase.id, first.change.rest.id), numbers)
    return not_violated(history, _clean(judged), numbers, vacuous=_unjudged(history, judged), across_layers=True)


def compared(bill: Bill) -> bool:
    """Whether reads and writes of a change can be held against the formulas for changes without
    conflicts."""
    return bill.silent is None and not bill.conflicts


def _wrong(bill: Bill) -> str:
    """What differs, in words; nothing where nothing does."""
    if bill.invented is not None:
        return f"has a conflict that the registry contradicts: {bill.invented}"
    differ = bill.wrong_rounds() + bill.wrong_operations()
    return f"cost {', '.join(differ)}" if differ else ""


def _measures(history: History, judged: Sequence[Bill], wrong: int) -> dict[str, int]:
    numbers = {
        "count": wrong,
        "changes": len(judged),
        "unjudged": len(announced(history)) - len(judged),
        "conflicted": sum(bool(bill.conflicts) for bill in judged),
        "retries": sum(len(bill.conflicts) for bill in judged),
        "compared": sum(compared(bill) for bill in judged),
        **{name: sum(getattr(bill.cost, name) for bill in judged) for name in (*ROUNDS, *OPERATIONS)},
    }
    if judged and all(bill.cost.bytes is not None for bill in judged):
        numbers["bytes"] = sum(bill.cost.bytes or 0 for bill in judged)
    for bill in judged:
        numbers |= bill.measures()
    return numbers


def _unjudged(history: History, judged: Sequence[Bill]) -> str | None:
    """Why some change was not judged, or its reads and writes not compared; None where all were."""
    doubts = [bill.doubt for bill in bills(history) if bill.doubt is not None]
    if len(bills(history)) < len(announced(history)):
        doubts.append("a spaced change did not come to rest")
    silent = [bill.silent for bill in judged if bill.silent is not None]
    if silent:
        doubts.append(f"reads and writes of {len(silent)} changes are not compared: {silent[0]}")
    return "; ".join(doubts) or None


def _clean(judged: Sequence[Bill]) -> str:
    why = f"{len(judged)} spaced changes cost what the formulas say"
    conflicted = sum(bool(bill.conflicts) for bill in judged)
    if conflicted:
        why += f", but for {conflicted} with conflicts (conflict_cost measures these)"
    return why


def _announced(history: History) -> bool:
    return bool(announced(history))


CHECK = Check(
    name="herd_cost",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A change of a group at rest did not cost the notifications, rebalances, reads and writes of the formulas.",
    plants=("ignore-watch",),
    judge=judge,
    applies_to=(ZK,),
    about=About.STATEMENT,
    applies=_announced,
)
