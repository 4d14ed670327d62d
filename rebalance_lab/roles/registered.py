"""Which brokers are registered in ZooKeeper, and where: how clients of 0.8 found them, and the lab's own do."""

from __future__ import annotations

from functools import partial

from rebalance_lab.kernel import Future
from rebalance_lab.wire.cluster import read_registration
from rebalance_lab.wire.paths import BROKER_IDS, broker_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.network import Address
from rebalance_lab.world.ports import Node, Reply, ZooKeeper
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def registered(zookeeper: PipelinedClient) -> dict[int, Address]:
    """The plaintext address of each broker. Raises MalformedPayload, SessionExpired and SessionClosed."""
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
