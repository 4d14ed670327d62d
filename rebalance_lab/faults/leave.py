"""Leave: a member is shut down cleanly and closes its session itself.

The proof is the session's close in the registry, as a request of the session itself: what the server
closes at expiry has no request number (cxid 0).
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

LEAVE = FaultKind(
    name="leave",
    noun="leave",
    suffers="leaves cleanly",
    many="leave cleanly",
    band="leaves",
    begins="leaves:",
    alone="Members leave.",
    momentary=True,
    change=True,
    in_controls=True,
)


async def leave(lab: AnyLab, node: AnyNode) -> None:
    """Let `node` leave cleanly, and record the proof."""
    fault = Injection(lab, LEAVE, node)
    closed = await lab.leave(node)
    if closed.session == fault.session and closed.of("cxid"):
        fault.bit(f"zxid {closed.zxid}: session {fault.session} closed by its request {closed.of('cxid')}")
    fault.ended()
