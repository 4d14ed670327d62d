"""Links: messages between two nodes are lost, both ways or one way, or take longer.

Neither node is notified. Connections stay open, and what was lost arrives after the cut when TCP sends it again; new
connections hang meanwhile. What was held back or slowed proves the fault: bytes in live trials, messages in the
simulator. If nobody used the link, there is no proof.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import OTHER_END, FaultKind
from rebalance_lab.kernel import Flag
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

LINK_CUT = FaultKind(
    name="link-cut",
    noun="cut of a link",
    suffers=f"is cut off from {OTHER_END}",
    many="are cut off from other nodes",
    band="link cut",
    begins="cuts a link of",
    ends="heals the link of",
    alone="Networks fail between two hosts and work between others.",
    spares_connections=True,
)

SLOW_LINK = FaultKind(
    name="slow-link",
    noun="slow link",
    suffers=f"reaches {OTHER_END} slowly",
    many="reach other nodes slowly",
    band="slow link",
    begins="slows a link of",
    ends="speeds up the link of",
    alone="Networks are slow at times.",
    spares_connections=True,
)


async def cut_link(
    lab: AnyLab,
    one: AnyNode,
    other: AnyNode,
    duration: int | Flag,
    *,
    there: bool = True,
    back: bool = True,
    in_place: Flag | None = None,
) -> None:
    """Lose what `one` sends to `other` (`there`) and what `other` sends to `one` (`back`), for `duration` ms or until
    the flag is raised, and record the proof. `in_place` is raised once nothing passes."""
    fault = Injection(lab, LINK_CUT, one, planned=duration, peer=other.actor, there=there, back=back)
    await lab.links.set(one.actor, other.actor, silent=(there, back))
    if in_place is not None:
        in_place.raise_()
    await _end(lab, fault, one, other, duration)


async def slow_link(
    lab: AnyLab,
    one: AnyNode,
    other: AnyNode,
    duration: int | Flag,
    *,
    there_ms: int,
    back_ms: int,
    in_place: Flag | None = None,
) -> None:
    """Let what `one` sends to `other` take `there_ms` longer, and `back_ms` the other way, for `duration` ms or until
    the flag is raised, and record the proof. `in_place` is raised once everything takes so long."""
    fault = Injection(lab, SLOW_LINK, one, planned=duration, peer=other.actor, there_ms=there_ms, back_ms=back_ms)
    await lab.links.set(one.actor, other.actor, slow_ms=(there_ms, back_ms))
    if in_place is not None:
        in_place.raise_()
    await _end(lab, fault, one, other, duration)


async def _end(lab: AnyLab, fault: Injection, one: AnyNode, other: AnyNode, duration: int | Flag) -> None:
    await lab.lasts(duration)
    done = await lab.links.set(one.actor, other.actor)
    if done:
        fault.bit(f"between {one.actor} and {other.actor}: {done}")
    fault.ended()
