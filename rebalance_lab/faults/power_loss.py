"""Loss of power: the files of a node that was killed lose what was not synced.

`kill -9` alone loses nothing that was written, because the operating system keeps it. Here each file keeps what was
synced and any beginning of the rest, torn at any byte; in the simulator folders lose names, too
(`rebalance_lab.world.storage`). What went proves the fault. A node that had synced everything loses nothing, and the
fault has no effect. A trial may be about some files only, and a loss of others proves nothing there (`proven_by`).
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection
from rebalance_lab.world.power_loss import PowerLoss

POWER_LOSS = FaultKind(
    name="power-loss",
    noun="loss of power",
    suffers="loses what it has not synced",
    many="lose what they have not synced",
    band="loses power",
    begins="takes the power of",
    alone="Hosts lose their power.",
    momentary=True,
    spares_connections=True,
)


async def lose_power(lab: AnyLab, node: AnyNode, *, proven_by: str = "", everything: bool = False) -> None:
    """Cut back the files of `node`, which was killed and is not started again yet, and record the proof. `proven_by`:
    how the paths of the files end that must lose bytes; if others alone do, there is no proof. Without it any loss is
    one, also of a name. `everything`: nothing survives that was not synced, for trials about that loss."""
    fault = Injection(lab, POWER_LOSS, node)
    lost = await node.process.lose_power(everything=everything)
    _record(fault, lost, lost.of(proven_by).proof if proven_by else lost.proof)


async def perhaps_lose_power(lab: AnyLab, node: AnyNode) -> None:
    """The same for a script that only wants its node to die: if the disk has kept everything, as one draw of four says
    for each file, no loss of power is recorded."""
    lost = await node.process.lose_power()
    if lost.proof is not None:
        _record(Injection(lab, POWER_LOSS, node), lost, lost.proof)


def _record(fault: Injection, lost: PowerLoss, proof: str | None) -> None:
    if proof is not None:
        fault.bit(proof, bytes_lost=dict(lost.bytes_lost))
    fault.ended()
