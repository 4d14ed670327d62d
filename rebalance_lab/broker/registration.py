"""A broker's place in ZooKeeper: the cluster's id, the paths that must be there, and `/brokers/ids/<id>`
(`KafkaServer.startup`, `KafkaZkClient.registerBroker`, Kafka 3.9.1)."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.kernel import RandomStream
from rebalance_lab.wire.cluster import (
    cluster_id_payload,
    read_cluster_id,
    read_registration,
    registration_payload,
    topic_id_text,
)
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    CLUSTER_ID,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PRODUCER_ID_BLOCK,
    TOPIC_CONFIGS,
    broker_path,
)
from rebalance_lab.world.errors import MultiRefused, NodeExists, NoNode
from rebalance_lab.world.ports import Create, Set, Stat
from rebalance_lab.zkclient.pipelined import PipelinedClient

#: What every broker creates when it starts, if it is missing (`ZkData.PersistentZkPaths`).
PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    BROKER_TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)


class BrokerIdTaken(Exception):
    """Another live broker is registered under this id. The message says where."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where clients reach the broker. `version`: of the payload, 1 (0.8.2) or 5 (3.9)."""

    host: str
    port: int
    rack: str | None = None
    version: int = 5


async def prepare(client: PipelinedClient) -> None:
    """Create the paths that brokers and controllers expect."""
    for path in PERSISTENT_PATHS:
        await client.ensure_path(path)


async def cluster_id(client: PipelinedClient, random: RandomStream) -> str:
    """The cluster's id; the first broker draws it."""
    await client.create_if_missing("/cluster")
    drawn = cluster_id_payload(topic_id_text(random.bits(128).to_bytes(16, "big")))
    await client.create_if_missing(CLUSTER_ID, drawn)
    return read_cluster_id((await client.ask(lambda session: session.get(CLUSTER_ID))).value.data)


async def register(
    client: PipelinedClient, broker_id: int, endpoint: Endpoint, *, timestamp_ms: int, last_session: int | None
) -> int:
    """Register the broker in this session. Returns its broker epoch, the registration's czxid.

    A registration of this broker's `last_session`, which the server has not ended yet, is replaced (KAFKA-7165). 3.9.1
    replaces only one whose reply it has got (KAFKA-14845); here that does not matter. Raises BrokerIdTaken if it is of
    another session.
    """
    path = broker_path(broker_id)
    payload = registration_payload(
        endpoint.host, endpoint.port, timestamp_ms=timestamp_ms, version=endpoint.version, rack=endpoint.rack
    )
    while True:  # ends, unless another broker registers and goes each time
        try:
            reply = await client.multi([Create(path, b"", ephemeral=True), Set(path, payload, 0)])
        except MultiRefused as refused:
            if not isinstance(refused.reason, NodeExists):
                raise refused.reason from None
        else:
            stat = reply.value[1]
            assert isinstance(stat, Stat)
            return stat.czxid
        there = (await client.ask(lambda session: session.exists(path))).value
        if there is None:
            continue
        if there.ephemeral_owner == client.session.session_id:
            return there.czxid  # the reply to the creation was lost
        if there.ephemeral_owner != last_session:
            raise BrokerIdTaken(
                f"broker id {broker_id} is taken: {path} is of session {there.ephemeral_owner:#x}; choose another id or"
                " stop that broker; after a kill -9 it goes once its session has timed out"
            )
        await _delete(client, path, there)


async def is_registered_at(client: PipelinedClient, broker_id: int, endpoint: Endpoint) -> bool:
    """Whether the broker that is registered under this id listens where this one does, or is gone."""
    try:
        node = (await client.ask(lambda session: session.get(broker_path(broker_id)))).value
    except NoNode:
        return True
    return read_registration(broker_id, node.data).address == (endpoint.host, endpoint.port)


async def _delete(client: PipelinedClient, path: str, there: Stat) -> None:
    try:
        await client.ask(lambda session: session.delete(path, version=there.version))
    except NoNode:
        return
