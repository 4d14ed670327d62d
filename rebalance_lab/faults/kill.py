"""Kill: a member's process ends at once and closes nothing (kill -9).

Its session stays at the server until it expires. The proof is that the process was seen dead.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import AnyLab, AnyNode

NAME = "kill"


async def kill(lab: AnyLab, node: AnyNode) -> None:
    """Kill `node`, and record the proof."""
    fault = Injection(lab, NAME, node)
    fault.bit(await node.process.kill())
    fault.ended()
