"""Z7a, Z7c (O9), herd cost: a spaced change costs what the formulas say.

For each spaced change (`spaced_changes`) notifications, rebalances, reads and writes are counted until
its rest and compared with the formulas (`herd_formulas`): simulated they must be equal, live none
may be above, and notifications that came together are counted as coalesced. Reads and writes are
compared for members that all subscribe to the same topics by name; of others only notifications and
rebalances are.

Witness: the PHASE that announced the change, and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.checks.faults import clock_drifted, not_violated, violated
from rebalance_lab.checks.herd_formulas import Expected, expected
from rebalance_lab.checks.model import About, Check, Finding
from rebalance_lab.checks.spaced_changes import Cost, SpacedChange, announced, cost, spaced_changes
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History

NUMBERS = ("notifications", "rebalances", "reads", "writes")


@dataclass(frozen=True, slots=True)
class _Bill:
    """What a change cost, and what it should."""

    change: SpacedChange
    cost: Cost
    expected: Expected

    @property
    def names(self) -> tuple[str, ...]:
        """Which numbers are compared."""
        return NUMBERS if self.expected.operations else NUMBERS[:2]

    def wrong(self, *, exact: bool) -> list[str]:
        """The numbers that differ; live, those that are too high."""
        pairs = [(name, getattr(self.cost, name), getattr(self.expected.cost, name)) for name in self.names]
        return [name for name, found, told in pairs if (found != told if exact else found > told)]

    @property
    def coalesced(self) -> int:
        return max(0, self.expected.cost.notifications - self.cost.notifications)

    def measures(self) -> dict[str, int]:
        """Of this change, each by its name: `join_1_reads`, `join_1_expected_reads`, …"""
        name = self.change.name
        found = {f"{name}_members": self.change.before, f"{name}_retries": self.expected.retries}
        found |= {f"{name}_{each}": getattr(self.cost, each) for each in NUMBERS}
        found |= {} if self.cost.bytes is None else {f"{name}_bytes": self.cost.bytes}
        return found | {f"{name}_expected_{each}": getattr(self.expected.cost, each) for each in self.names}


def judge(history: History) -> Finding:
    """Measures: `changes` compared, `count` of those that differ, `unjudged`; `coalesced`
    notifications, `retries`; the totals `notifications`, `rebalances`, `reads`, `writes`, and `bytes` of
    payload read where operations were recorded one by one; and for each change, by kind and number
    (`join_1_…`): `members` before it, `retries`, these numbers, and `expected_…` of those that are
    compared."""
    changes = spaced_changes(history)
    doubts = [change.why_not for change in changes if change.why_not is not None]
    bills = [_Bill(each, cost(history, each), expected(history, each)) for each in changes if each.why_not is None]
    exact = history.trial.world == "simulated"
    wrong = [] if clock_drifted(history) else [bill for bill in bills if bill.wrong(exact=exact)]
    numbers = {
        "count": len(wrong),
        "changes": len(bills),
        "unjudged": len(announced(history)) - len(bills),
        "coalesced": sum(bill.coalesced for bill in bills),
        "retries": sum(bill.expected.retries for bill in bills),
        **{name: sum(getattr(bill.cost, name) for bill in bills) for name in NUMBERS},
    }
    if bills and all(bill.cost.bytes is not None for bill in bills):
        numbers["bytes"] = sum(bill.cost.bytes or 0 for bill in bills)
    for bill in bills:
        numbers |= bill.measures()
    if wrong:
        return _violated(wrong[0], numbers, exact=exact)
    nothing = None if bills else "; ".join(doubts) or "no spaced change came to rest"
    why = f"{len(bills)} spaced changes cost what the formulas say"
    if numbers["coalesced"]:
        why += f", less {numbers['coalesced']} notifications that came together"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _violated(first: _Bill, numbers: dict[str, int], *, exact: bool) -> Finding:
    change = first.change
    told = ", ".join(
        f"{getattr(first.cost, name)} {name} ({getattr(first.expected.cost, name)} expected)"
        for name in first.wrong(exact=exact)
    )
    why = f"a {change.kind} in a group of {change.before} cost {told}"
    return violated(why, (change.phase.id, change.rest.id), numbers)


def _announced(history: History) -> bool:
    return bool(announced(history))


CHECK = Check(
    name="herd_cost",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A change of a group at rest cost other notifications, rebalances, reads or writes than the formulas say.",
    plants=("ignore-watch",),
    judge=judge,
    about=About.STATEMENT,
    applies=_announced,
)
