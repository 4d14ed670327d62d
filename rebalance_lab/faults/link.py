"""Links: messages between two nodes are lost, both ways or one way, or take longer.

Neither node is notified. Connections stay open, and what was lost arrives after the cut when TCP sends it again; new
connections hang meanwhile. What was held back or slowed proves the fault: bytes in live trials, messages in the
simulator. If nobody used the link, there is no proof.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

LINK_CUT = FaultKind(
    name="link-cut",
    noun="cut of a link",
    suffers="is cut off from another node",
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
    suffers="reaches another node slowly",
    many="reach other nodes slowly",
    band="slow link",
    begins="slows a link of",
    ends="speeds up the link of",
    alone="Networks are slow at times.",
    spares_connections=True,
)


async def cut_link(
    lab: AnyLab, one: AnyNode, other: AnyNode, duration_ms: int, *, there: bool = True, back: bool = True
) -> None:
    """Lose for `duration_ms` what `one` sends to `other` (`there`) and what `other` sends to `one` (`back`), and
    record the proof."""
    fault = Injection(lab, LINK_CUT, one, planned_ms=duration_ms, peer=other.actor, there=there, back=back)
    await lab.links.set(one.actor, other.actor, silent=(there, back))
    await _end(lab, fault, one, other, duration_ms)


async def slow_link(
    lab: AnyLab, one: AnyNode, other: AnyNode, duration_ms: int, *, there_ms: int, back_ms: int
) -> None:
    """Let for `duration_ms` what `one` sends to `other` take `there_ms` longer, and `back_ms` the other way, and record
    the proof."""
    fault = Injection(lab, SLOW_LINK, one, planned_ms=duration_ms, peer=other.actor, there_ms=there_ms, back_ms=back_ms)
    await lab.links.set(one.actor, other.actor, slow_ms=(there_ms, back_ms))
    await _end(lab, fault, one, other, duration_ms)


async def _end(lab: AnyLab, fault: Injection, one: AnyNode, other: AnyNode, duration_ms: int) -> None:
    await lab.sleep_ms(duration_ms)
    done = await lab.links.set(one.actor, other.actor)
    if done:
        fault.bit(f"between {one.actor} and {other.actor}: {done}")
    fault.ended()
