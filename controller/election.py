"""How a broker becomes the controller: `/controller` and the controller epoch.

From 2.1 on both are written in one transaction (`KafkaZkClient.registerControllerAndIncrementControllerEpoch`, 2.1 to
3.9.1), so there is no controller without an epoch of its own, and no epoch has two (claims E1, E3). Before, they were
two operations, and another broker could be elected in between (`ControllerForm`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from controller.forms import ControllerForm
from controller.settings import ControllerBug
from rebalance_lab.wire.cluster import controller_payload, read_controller
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import CONTROLLER, CONTROLLER_EPOCH
from rebalance_lab.world.errors import BadVersion, MultiRefused, NodeExists, NoNode
from rebalance_lab.world.ports import Check, Create, Set, Stat
from rebalance_lab.zkclient.pipelined import PipelinedClient


@dataclass(frozen=True, slots=True)
class Elected:
    """`epoch`: the controller epoch of this reign. `version`: of the znode that holds it, by which every write of the
    reign is fenced; None if none is. `epochs_late`: by how much the epoch that it writes is too low; a mistake that is
    planted."""

    epoch: int
    version: int | None
    epochs_late: int = 0

    @property
    def fence(self) -> Check | None:
        """The first operation of each of the reign's writes: no other controller has been elected since. None: writes
        have no such condition."""
        return None if self.version is None else Check(CONTROLLER_EPOCH, self.version)


class ControllerMoved(Exception):
    """Another broker is the controller: this one's reign is over, or did not begin."""


async def elect(
    client: PipelinedClient,
    broker_id: int,
    *,
    timestamp_ms: int,
    form: ControllerForm = ControllerForm.V2_1,
    bug: ControllerBug | None = None,
    reads_back: bool = True,
) -> Elected:
    """Become the controller. `reads_back`: see `ControllerSettings.election_read_back`. Raises ControllerMoved if
    another broker is faster."""
    if form.in_one_transaction:
        return await _in_one_transaction(client, broker_id, timestamp_ms, bug, reads_back=reads_back)
    return await _in_two_steps(client, broker_id, timestamp_ms, form)


async def _in_one_transaction(
    client: PipelinedClient, broker_id: int, timestamp_ms: int, bug: ControllerBug | None, *, reads_back: bool
) -> Elected:
    """If the reply to the transaction is lost, it is asked for again and refused. Then the znodes say whose it was."""
    try:
        epoch, version = await _epoch(client)
    except NoNode:
        await client.create_if_missing(CONTROLLER_EPOCH, b"0")
        epoch, version = await _epoch(client)
    new = epoch if bug is ControllerBug.REPEATS_EPOCH and epoch else epoch + 1
    payload = controller_payload(broker_id, timestamp_ms=timestamp_ms)
    try:
        reply = await client.multi(
            [Create(CONTROLLER, payload, ephemeral=True), Set(CONTROLLER_EPOCH, b"%d" % new, version)]
        )
    except MultiRefused:
        if not reads_back:
            raise ControllerMoved(f"broker {broker_id} was not elected, for all it knows") from None
        return await _read_back(client, broker_id, new)
    stat = reply.value[1]
    assert isinstance(stat, Stat)
    return Elected(new, stat.version, epochs_late=int(bug is ControllerBug.WRITES_LAST_EPOCH and epoch > 0))


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


async def _in_two_steps(client: PipelinedClient, broker_id: int, timestamp_ms: int, form: ControllerForm) -> Elected:
    """`/controller`, then the epoch. If another broker raises the epoch in between, 0.8.2 only logs it, and reigns with
    the epoch that it has read (`KafkaController.incrementControllerEpoch`, whose last `catch` takes its own exception).
    1.1 gives up, and deletes `/controller` without asking whose it is (`triggerControllerMove`)."""
    payload = controller_payload(broker_id, timestamp_ms=timestamp_ms)
    try:
        await client.ask(lambda session: session.create(CONTROLLER, payload, ephemeral=True))
    except NodeExists:
        await _is_mine(client, broker_id)
    try:
        epoch, version = await _epoch(client)
        await client.ask(lambda session: session.set(CONTROLLER_EPOCH, b"%d" % (epoch + 1), version=version))
    except NoNode:
        if await client.create_if_missing(CONTROLLER_EPOCH, b"1"):
            return Elected(1, None)
        await depose(client)  # in both forms
        raise ControllerMoved(f"another broker than {broker_id} has made the first controller epoch") from None
    except BadVersion:
        if form is ControllerForm.V0_8_2:
            return Elected(epoch, None)
        await depose(client)
        raise ControllerMoved(f"another broker than {broker_id} has raised controller epoch {epoch}") from None
    return Elected(epoch + 1, None)


async def _is_mine(client: PipelinedClient, broker_id: int) -> None:
    """Whether `/controller` was created by this session after all, and the reply was lost
    (`KafkaZkClient.checkedEphemeralCreate`). Raises ControllerMoved."""
    there = (await client.ask(lambda session: session.exists(CONTROLLER))).value
    if there is None or there.ephemeral_owner != client.session.session_id:
        raise ControllerMoved(f"another broker than {broker_id} has created {CONTROLLER}")


async def depose(client: PipelinedClient) -> None:
    """Delete `/controller`, whoever has created it, as controllers up to 2.0 do that give up."""
    with suppress(NoNode):
        await client.ask(lambda session: session.delete(CONTROLLER))


async def _epoch(client: PipelinedClient) -> tuple[int, int]:
    """The controller epoch, and the version of its znode. Raises KafkaException."""
    node = (await client.ask(lambda session: session.get(CONTROLLER_EPOCH))).value
    if not node.data.isdigit():
        raise KafkaException(f"{CONTROLLER_EPOCH} holds {node.data[:50]!r}, which is not a number")
    return int(node.data), node.stat.version
