"""Kill: a member's process ends at once and closes nothing (kill -9).

Its session stays at the server until it expires. The proof is that the process was seen dead.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.history.intervals import KILL
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

KILLED = FaultKind(
    name=KILL,
    noun="kill",
    suffers="is killed",
    many="are killed",
    band="killed",
    begins="kills",
    alone="Processes die.",
    momentary=True,
)


async def kill(lab: AnyLab, node: AnyNode) -> None:
    """Kill `node`, and record the proof."""
    fault = Injection(lab, KILLED, node)
    fault.bit(await node.process.kill())
    fault.ended()
