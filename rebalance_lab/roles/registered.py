"""Which brokers are registered in ZooKeeper, and where: how clients of 0.8 found them, and the lab's own do."""

from __future__ import annotations

from functools import partial

from rebalance_lab.kernel import Future
from rebalance_lab.wire.cluster import read_registration
from rebalance_lab.wire.paths import BROKER_IDS, broker_path
from rebalance_lab.world.errors import NoNode, SessionExpired
from rebalance_lab.world.network import Address
from rebalance_lab.world.ports import Environment, Node, Reply, ZooKeeper
from rebalance_lab.zkclient.pipelined import PipelinedClient


class RegisteredBrokers:
    """Reads the registrations in a ZooKeeper session of its own, and opens another one if that has expired: a client
    registers nothing, so an expiry costs it only the time to connect again. Sessions begin at once."""

    def __init__(self, environment: Environment, connect: str, session_timeout_ms: int) -> None:
        self._open = partial(environment.zookeeper.open, connect, session_timeout_ms)
        self._session = self._open()

    async def addresses(self) -> dict[int, Address]:
        """The plaintext address of each broker. Raises KafkaException, and SessionClosed after `close`."""
        while True:  # as long as there is no ZooKeeper
            try:
                return await _addresses(PipelinedClient(self._session))
            except SessionExpired:
                self._session = self._open()

    async def close(self) -> None:
        await self._session.close()


async def _addresses(zookeeper: PipelinedClient) -> dict[int, Address]:
    found: dict[int, Address] = {}
    try:
        ids = (await zookeeper.ask(lambda session: session.children(BROKER_IDS))).value.names
    except NoNode:
        return found
    for broker_id in sorted(map(int, ids)):
        try:
            node = (await zookeeper.ask(partial(_get, path=broker_path(broker_id)))).value
        except NoNode:
            continue  # it has gone meanwhile
        address = read_registration(broker_id, node.data).address
        if address is not None:
            found[broker_id] = Address(*address)
    return found


def _get(session: ZooKeeper, *, path: str) -> Future[Reply[Node]]:
    return session.get(path)
