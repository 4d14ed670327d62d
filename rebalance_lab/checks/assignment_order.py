"""The next leader is the first replica of the assignment that is alive and in sync (claim E5b).

The article says that it is the first of the ISR. Elections decide it in which the two orders name different brokers,
or neither names the leader (`leader_order`).

Witness: the state before the election, and the one after.
"""

from __future__ import annotations

from rebalance_lab.checks.leader_order import deciding, judge_order
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """See `leader_order.judge_order`."""
    return judge_order(
        history,
        lambda each: each.by_assignment,
        instead=lambda each: f"{each.by_assignment} stands before it in the assignment",
        kept="each new leader was the first in sync of its assignment",
    )


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
