"""Expiry: the server ends a member's session though the member lives and is connected.

Live, a second connection shows the session's id and password, and closes it. It bit if the
registry holds the session's end.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "expire"


async def expire(lab: Lab, member: MemberHandle) -> None:
    """End the session of `member` behind its back, and record what proves it."""
    fault = Injection(lab, NAME, member, must_outlast_session=True)
    how = await member.process.expire()
    await lab.until(lambda: lab.closed(fault.session) is not None, f"the end of session {fault.session}")
    closed = lab.closed(fault.session)
    assert closed is not None
    fault.bit(f"{how}; zxid {closed.zxid}: session closed")
    fault.ended()
