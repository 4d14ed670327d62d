"""The role of a reader that looks at every replica of one partition: what is in each log, whatever the brokers believe.

It starts once the cluster has healed, and reads each broker's replica once, from its beginning to its end. Each read is
a pair of events: INVOKED (detail: op, broker), then OK (detail: broker, records, of which each is offset, leader epoch
and number, or what a value is that no client writes: `roles.values`). A read that fails is repeated.

Kafka's brokers answer such a reader with committed records only (`FetchIsolation.of`, 3.9.1). Of them it reads the
files.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.records import ReplicaRecord, fetch_replica
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.replicas import READ_REPLICA
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.roles.values import told
from rebalance_lab.wire.kafka.records import batches, records
from rebalance_lab.world.network import NetworkError
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
    for broker in spec.brokers:
        while not await _read(environment, spec, registered, broker):
            await environment.tasks.sleep(RETRY_US)


async def _read(environment: Environment, spec: ReplicaReaderSpec, registered: RegisteredBrokers, broker: int) -> bool:
    """Whether one replica was read to its end."""
    began = _emit(environment, spec, Kind.INVOKED, broker=broker)
    if broker in spec.folders:
        found = read_log(Path(spec.folders[broker]) / f"{spec.topic}-{spec.partition}")
    else:
        try:
            found = await _fetched(environment, spec, registered, broker)
        except (NoBroker, NetworkError, RefusedByBroker) as error:
            _emit(environment, spec, Kind.FAILED_OP, broker=broker, of=began, error=str(error))
            return False
    read = [(each.offset, each.leader_epoch, told(each.value)) for each in found]
    _emit(environment, spec, Kind.OK, broker=broker, of=began, records=read)
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
    cluster = ClusterClient(
        environment.tasks,
        environment.network,
        list((await registered.addresses()).values()),
        spec.actor,
        request_timeout_ms=spec.request_timeout_ms,
    )
    found: list[ReplicaRecord] = []
    try:
        await cluster.refresh([spec.topic])
        while more := await fetch_replica(cluster, broker, spec.topic, spec.partition, _next(found)):
            found += more
    finally:
        cluster.close()
    return found


def _next(found: list[ReplicaRecord]) -> int:
    return found[-1].offset + 1 if found else 0


def _emit(environment: Environment, spec: ReplicaReaderSpec, kind: Kind, **detail: object) -> int:
    """Record an event. Returns its number."""
    detail = {"op": READ_REPLICA, **detail}
    event = environment.recorder.emit(
        Layer.OP, kind, member=spec.actor, topic=spec.topic, partition=spec.partition, detail=detail
    )
    return event[1]


ROLE = Role("replica reader", ReplicaReaderSpec, run)
