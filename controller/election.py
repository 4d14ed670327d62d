"""How a broker becomes the controller: `/controller` and the controller epoch, in one transaction.

As `KafkaZkClient.registerControllerAndIncrementControllerEpoch` of Kafka 2.1 to 3.9.1. Either both znodes are written
or none, so there is no controller without an epoch of its own, and no epoch has two (claims E1, E3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rebalance_lab.wire.cluster import controller_payload, read_controller
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import CONTROLLER, CONTROLLER_EPOCH
from rebalance_lab.world.errors import MultiRefused, NoNode
from rebalance_lab.world.ports import Check, Create, Set, Stat
from rebalance_lab.zkclient.pipelined import PipelinedClient


class ElectionBug(StrEnum):
    """A mistake of a controller that can be planted.

    - REPEATS_EPOCH: the election writes the controller epoch that it has found, unless it is the first.
    - WATCHES_ONCE: a broker that was told once that the controller is gone does not watch again.
    - WRITES_LAST_EPOCH: the controller writes states in the epoch of the one before, unless it is the first.
    - SHRINKS_FIRST: dead replicas leave the ISR of a topic's first partition only.
    - FORGETS_DELETIONS: a new controller does not go on with the deletions that it finds.
    - FORGETS_NEW: a new controller elects nobody for partitions that have never had a leader.
    """

    REPEATS_EPOCH = "repeats-epoch"
    WATCHES_ONCE = "watches-once"
    WRITES_LAST_EPOCH = "writes-last-epoch"
    SHRINKS_FIRST = "shrinks-first"
    FORGETS_DELETIONS = "forgets-deletions"
    FORGETS_NEW = "forgets-new"


@dataclass(frozen=True, slots=True)
class Elected:
    """`epoch`: the controller epoch of this reign. `version`: of the znode that holds it, by which every write of the
    reign is fenced. `epochs_late`: by how much the epoch that it writes is too low; a mistake that is planted."""

    epoch: int
    version: int
    epochs_late: int = 0

    @property
    def fence(self) -> Check:
        """The first operation of each of the reign's writes: no other controller has been elected since."""
        return Check(CONTROLLER_EPOCH, self.version)


class ControllerMoved(Exception):
    """Another broker is the controller: this one's reign is over, or did not begin."""


async def elect(
    client: PipelinedClient, broker_id: int, *, timestamp_ms: int, bug: ElectionBug | None = None
) -> Elected:
    """Become the controller. Raises ControllerMoved if another broker is faster.

    If the reply to the transaction is lost, it is asked for again and refused. Then the znodes say whose it was.
    """
    try:
        epoch, version = await _epoch(client)
    except NoNode:
        await client.create_if_missing(CONTROLLER_EPOCH, b"0")
        epoch, version = await _epoch(client)
    new = epoch if bug is ElectionBug.REPEATS_EPOCH and epoch else epoch + 1
    payload = controller_payload(broker_id, timestamp_ms=timestamp_ms)
    try:
        reply = await client.multi(
            [Create(CONTROLLER, payload, ephemeral=True), Set(CONTROLLER_EPOCH, b"%d" % new, version)]
        )
    except MultiRefused:
        return await _read_back(client, broker_id, new)
    stat = reply.value[1]
    assert isinstance(stat, Stat)
    return Elected(new, stat.version, epochs_late=int(bug is ElectionBug.WRITES_LAST_EPOCH and epoch > 0))


async def _read_back(client: PipelinedClient, broker_id: int, epoch: int) -> Elected:
    """The reign that was asked for, if it was granted after all. Raises ControllerMoved."""
    now, version = await _epoch(client)
    try:
        holder = read_controller((await client.ask(lambda session: session.get(CONTROLLER))).value.data).brokerid
    except NoNode:
        raise ControllerMoved(f"broker {broker_id} was not elected, and there is no controller: try again") from None
    if holder != broker_id or now != epoch:
        raise ControllerMoved(
            f"broker {holder} is the controller with epoch {now}, not broker {broker_id} with {epoch}"
        )
    return Elected(now, version)


async def _epoch(client: PipelinedClient) -> tuple[int, int]:
    """The controller epoch, and the version of its znode. Raises KafkaException."""
    node = (await client.ask(lambda session: session.get(CONTROLLER_EPOCH))).value
    if not node.data.isdigit():
        raise KafkaException(f"{CONTROLLER_EPOCH} holds {node.data[:50]!r}, which is not a number")
    return int(node.data), node.stat.version
