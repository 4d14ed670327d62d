"""The next leader is the first replica of the assignment that is alive and in sync (claim E5b).

The article says that it is the first of the ISR. Elections decide it in which the two orders name different brokers
(`leader_order`).

Witness: the state before the election, and the one after.
"""

from __future__ import annotations

from rebalance_lab.checks.leader_order import deciding
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `count`, elections of another broker; `deciding`, elections in which the two orders differ."""
    elections = deciding(history)
    others = [each for each in elections if each.leader != each.by_assignment]
    measures = {"count": len(others), "deciding": len(elections)}
    if others:
        wrong = others[0]
        first = wrong.by_assignment
        why = f"{wrong.partition}: broker {wrong.leader} leads, and {first} stands before it in the assignment"
        return violated(why, (wrong.before.id, wrong.after.id), measures)
    return not_violated(history, "each new leader was the first in sync of its assignment", measures)


CHECK = Check(
    name="assignment_order",
    compares=(Layer.REGISTRY,),
    meaning="A replica became the leader though another one in sync stands before it in the assignment.",
    together="The assignment names a replica that is alive and in sync first, and the controller chose another one.",
    statement="The next leader is the first replica of the assignment that is alive and in sync",
    plants=(Planted("elects-by-isr", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=deciding,
)
