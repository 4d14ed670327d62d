"""Kill: a member's process ends at once, with nothing said to anybody (kill -9).

Its session lives on at the server until it expires. It bit if the process was seen dead.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "kill"


async def kill(lab: Lab, member: MemberHandle) -> None:
    """Kill `member`, and record what proves it."""
    fault = Injection(lab, NAME, member)
    fault.bit(await member.process.kill())
    fault.ended()
