"""A lost reply: the server does what the member asked, and the connection breaks before it says so.

The member cannot know whether it was done. It bit if a reply was seen and swallowed.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "lose-reply"


async def lose_reply(lab: Lab, member: MemberHandle, created: str = "") -> None:
    """Lose the reply to the member's next request; `created`: to its next create of a znode in whose
    path this occurs. Done when that has happened: let the member have something to ask for meanwhile."""
    fault = Injection(lab, NAME, member)
    proof = await member.process.lose_next_reply(created)
    fault.bit(f"{proof}; it told of a znode created in {created}" if created else proof)
    fault.ended()
