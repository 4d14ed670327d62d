"""The next leader is the first replica of the ISR (claim E5b).

Kafka 0.8.0 chooses so, and the controlled shutdown up to 0.9. All other elections follow the assignment
(`assignment_order`).
Elections decide it in which the two orders name different brokers, or neither names the leader (`leader_order`).

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
        lambda each: each.by_isr,
        instead=lambda each: f"of the ISR before, {each.by_isr} comes first",
        kept="each new leader was the first of the ISR",
    )


CHECK = Check(
    name="isr_order",
    compares=(Layer.REGISTRY,),
    meaning="A replica became the leader that is not the first of the ISR.",
    together="Of the ISR that stood before, another replica comes first that is in the new one.",
    statement="The next leader is the first of the ISR",
    plants=(Planted("moves-by-assignment", "isr-election", settings={"leaves": "shuts-down", "selection": "0.8.2"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=deciding,
)
