"""A lost reply: the server carries out a member's request, and the connection breaks before the reply.

The member cannot know whether the request was carried out. The proof is that a reply was seen and
dropped.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

LOST_REPLY = FaultKind(
    name="lose-reply",
    noun="lost reply",
    suffers="does not get the reply to a request that was carried out",
    many="lose a reply",
    band="reply lost",
    begins="loses reply:",
    alone="A connection may break between a request and its reply.",
)


async def lose_reply(lab: AnyLab, node: AnyNode, created: str = "") -> None:
    """Lose the reply to the member's next request, or, with `created`, to its next create of a znode whose path
    contains this. Returns when that has happened: the member must have something to request meanwhile."""
    fault = Injection(lab, LOST_REPLY, node)
    proof = await node.process.lose_next_reply(created)
    fault.bit(f"{proof}; it told of a znode created in {created}" if created else proof)
    fault.ended()
