"""A lost reply: the server carries out a member's request, and the connection breaks before the reply.

The member cannot know whether the request was carried out. The proof is that a reply was seen and
dropped.
"""

from __future__ import annotations

from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import AnyLab, AnyNode

NAME = "lose-reply"


async def lose_reply(lab: AnyLab, node: AnyNode, created: str = "") -> None:
    """Lose the reply to the member's next request, or, with `created`, to its next create of a znode whose path
    contains this. Returns when that has happened: the member must have something to request meanwhile."""
    fault = Injection(lab, NAME, node)
    proof = await node.process.lose_next_reply(created)
    fault.bit(f"{proof}; it told of a znode created in {created}" if created else proof)
    fault.ended()
