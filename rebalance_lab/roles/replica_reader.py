"""The role of a reader at the end of a trial: what consumers are given of one partition, and what is in each log.

It starts once the cluster has healed. It reads the partition as a consumer does, from its leader. Then it reads each
broker's replica from its beginning to its end, whatever the brokers believe. Each read is a pair of events, INVOKED and
OK. The first is like a client's (op `consume`, `roles.log_client`). Those of a replica have, in INVOKED, op and broker,
and in OK broker and records, of which each is offset, leader epoch and number, or what a value is that no client writes
(`roles.values`). A read that fails is repeated.

Kafka's brokers answer a reader of replicas with committed records only (`FetchIsolation.of`, 3.9.1). Of them it reads
the files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from rebalance_lab.client.cluster import ClusterClient
from rebalance_lab.client.records import ReplicaRecord, fetch_replica, read_committed
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.replicas import READ_REPLICA
from rebalance_lab.history.writes import CONSUME
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.log_client import UNANSWERED
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.roles.values import told, told_of
from rebalance_lab.wire.kafka.records import batches, records
from rebalance_lab.world.ports import Environment

RETRY_US = 100_000


class ReplicaReaderSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`brokers`: those whose replicas it reads. `folders`: broker -> the folder of its logs, for brokers of Kafka."""

    connect: str
    session_timeout_ms: int
    brokers: tuple[int, ...]
    topic: str
    partition: int = 0
    request_timeout_ms: int = 5_000
    folders: dict[int, str] = msgspec.field(default_factory=dict)


async def run(environment: Environment, spec: ReplicaReaderSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("reader") as scope:
        scope.spawn(_read_all(environment, spec, registered), "reads")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


async def _read_all(environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers) -> None:
    await registered.addresses()  # a node has begun, for the runner, once it is connected
    while not await _consumed(environment, spec, registered):
        await environment.tasks.sleep(RETRY_US)
    for broker in spec.brokers:
        while not await _read(environment, spec, registered, broker):
            await environment.tasks.sleep(RETRY_US)


async def _consumed(environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers) -> bool:
    """Whether all that is committed was read."""
    began = _emit(environment, spec, Kind.INVOKED, op=CONSUME)
    try:
        async with _cluster(environment, spec, registered) as cluster:
            found = await read_committed(cluster, spec.topic, spec.partition) or []
    except UNANSWERED as error:
        _emit(environment, spec, Kind.FAILED_OP, op=CONSUME, of=began, error=str(error))
        return False
    read = [(each.offset, told_of(each)) for each in found]
    _emit(environment, spec, Kind.OK, op=CONSUME, of=began, records=read)
    return True


async def _read(environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers, broker: int) -> bool:
    """Whether one replica was read to its end."""
    began = _emit(environment, spec, Kind.INVOKED, op=READ_REPLICA, broker=broker)
    if broker in spec.folders:
        found = read_log(Path(spec.folders[broker]) / f"{spec.topic}-{spec.partition}")
    else:
        try:
            found = await _fetched(environment, spec, registered, broker)
        except UNANSWERED as error:
            _emit(environment, spec, Kind.FAILED_OP, op=READ_REPLICA, broker=broker, of=began, error=str(error))
            return False
    read = [(each.offset, each.leader_epoch, told(each.value)) for each in found]
    _emit(environment, spec, Kind.OK, op=READ_REPLICA, broker=broker, of=began, records=read)
    return True


def read_log(folder: Path) -> list[ReplicaRecord]:
    """What the segments of a log of Kafka hold. Only live trials have such brokers. Raises OSError."""
    found = []
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for at, header in batches(data):
            found += [ReplicaRecord(each.offset, header.leader_epoch, each.value) for each in records(data, at)]
    return found


async def _fetched(
    environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers, broker: int
) -> list[ReplicaRecord]:
    found: list[ReplicaRecord] = []
    async with _cluster(environment, spec, registered) as cluster:
        while more := await fetch_replica(cluster, broker, spec.topic, spec.partition, _next(found)):
            found += more
    return found


@asynccontextmanager
async def _cluster(
    environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers
) -> AsyncIterator[ClusterClient]:
    """A client of the brokers that are registered. Raises what is in UNANSWERED."""
    addresses = list((await registered.addresses()).values())
    cluster = ClusterClient(
        environment.tasks, environment.network, addresses, spec.actor, request_timeout_ms=spec.request_timeout_ms
    )
    try:
        await cluster.refresh([spec.topic])
        yield cluster
    finally:
        cluster.close()


def _next(found: list[ReplicaRecord]) -> int:
    return found[-1].offset + 1 if found else 0


def _emit(environment: Environment, spec: ReplicaReaderSpec, kind: Kind, **detail: object) -> int:
    """Record an event. Returns its number."""
    event = environment.recorder.emit(
        Layer.OP, kind, member=spec.actor, topic=spec.topic, partition=spec.partition, detail=detail
    )
    return event[1]


ROLE = Role("replica reader", ReplicaReaderSpec, run)
