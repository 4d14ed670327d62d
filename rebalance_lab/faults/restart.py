"""Restart: the process of a node that was killed, or has left, is started again, under its name.

It goes on counting its events, and begins anew in everything else: with another session, and a member with another
consumer id unless `consumer.id` fixes it. The proof is that the process was seen running.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

RESTARTED = FaultKind(
    name=RESTART,
    noun="restart",
    suffers="is started again",
    many="are started again",
    band="starts again",
    begins="starts again:",
    alone="Supervisors start dead processes again.",
    momentary=True,
    spares_connections=True,
    change=True,
)


async def restart(lab: AnyLab, node: AnyNode) -> None:
    """Start a `node` that was killed or has left again, wait until its new life has begun, and record the proof."""
    fault = Injection(lab, RESTARTED, node)
    fault.bit(await lab.start_again(node))
    fault.ended()
