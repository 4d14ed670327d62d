"""Expiry: the server ends a session although its member is alive and connected.

In live trials a second connection presents the session's id and password, and closes it. The proof is
the session's end in the registry.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

EXPIRY = FaultKind(
    name="expire",
    noun="expiry",
    suffers="loses its session while it is alive",
    many="lose their session",
    band="session ended",
    begins="expires",
    alone="A server may end any session; the member learns of it when it speaks to a server again.",
    momentary=True,
)


async def expire(lab: AnyLab, node: AnyNode) -> None:
    """End the session of `node` without its knowledge, and record the proof."""
    fault = Injection(lab, EXPIRY, node, must_outlast_session=True)
    how = await node.process.expire()
    await lab.until(lambda: lab.closed(fault.session) is not None, f"the end of session {fault.session}")
    closed = lab.closed(fault.session)
    assert closed is not None
    fault.bit(f"{how}; zxid {closed.zxid}: session closed")
    fault.ended()
