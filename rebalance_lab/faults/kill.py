"""Kill: a member's process ends at once, with nothing said to anybody (kill -9).

Its session lives on at the server until it expires. It bit if the process was seen dead.
"""

from __future__ import annotations

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "kill"


async def kill(lab: Lab, member: MemberHandle) -> None:
    """Kill `member`, and record what proves it."""
    fault = {"fault": NAME, "target": member.actor}
    began = lab.recorder.emit(
        Layer.FAULT,
        Kind.FAULT_BEGAN,
        member=member.state.member,
        detail={**fault, "session": member.state.session, "planned_ms": 0, "must_outlast_session": False},
    )
    proof = await member.process.kill()
    lab.recorder.emit(Layer.FAULT, Kind.FAULT_BIT, detail={**fault, "of": began[1], "proof": proof})
    lab.recorder.emit(Layer.FAULT, Kind.FAULT_ENDED, detail={**fault, "of": began[1]})
