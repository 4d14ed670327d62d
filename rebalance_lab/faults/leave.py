"""Leave: a member is shut down cleanly and closes its session itself.

It bit if the registry holds the session's close, and as a request of the session's own: what
the server closes by itself, at expiry, has no request number (cxid 0).
"""

from __future__ import annotations

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "leave"


async def leave(lab: Lab, member: MemberHandle) -> None:
    """Let `member` leave cleanly, and record what proves it."""
    fault = {"fault": NAME, "target": member.actor}
    session = member.state.session
    began = lab.recorder.emit(
        Layer.FAULT,
        Kind.FAULT_BEGAN,
        member=member.state.member,
        detail={**fault, "session": session, "planned_ms": 0, "must_outlast_session": False},
    )
    closed = await lab.leave(member)
    if closed.session == session and closed.of("cxid"):
        proof = f"zxid {closed.zxid}: session {session} closed by its request {closed.of('cxid')}"
        lab.recorder.emit(Layer.FAULT, Kind.FAULT_BIT, detail={**fault, "of": began[1], "proof": proof})
    lab.recorder.emit(Layer.FAULT, Kind.FAULT_ENDED, detail={**fault, "of": began[1]})
