"""Leave: a member is shut down cleanly and closes its session itself.

It bit if the registry holds the session's close, and as a request of the session's own: what
the server closes by itself, at expiry, has no request number (cxid 0).
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "leave"


async def leave(lab: Lab, member: MemberHandle) -> None:
    """Let `member` leave cleanly, and record what proves it."""
    fault = Injection(lab, NAME, member)
    closed = await lab.leave(member)
    if closed.session == fault.session and closed.of("cxid"):
        fault.bit(f"zxid {closed.zxid}: session {fault.session} closed by its request {closed.of('cxid')}")
    fault.ended()
