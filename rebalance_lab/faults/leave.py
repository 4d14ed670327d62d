"""Leave: a member is shut down cleanly and closes its session itself.

The proof is the session's close in the registry, as a request of the session itself: what the server
closes at expiry has no request number (cxid 0).
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import AnyLab, AnyNode

NAME = "leave"


async def leave(lab: AnyLab, node: AnyNode) -> None:
    """Let `node` leave cleanly, and record the proof."""
    fault = Injection(lab, NAME, node)
    closed = await lab.leave(node)
    if closed.session == fault.session and closed.of("cxid"):
        fault.bit(f"zxid {closed.zxid}: session {fault.session} closed by its request {closed.of('cxid')}")
    fault.ended()
