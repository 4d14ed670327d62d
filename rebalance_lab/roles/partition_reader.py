"""The role of a reader that reads one partition along, from its beginning, while it is written.

It records what it reads (POLLED), and where its position is moved without reading (MOVED). Its brokers are those that
are registered; after any error it looks anew who they are, and goes on from its position.
"""

from __future__ import annotations

from dataclasses import replace

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.consumer import Consumer, Moved, Reset
from rebalance_lab.client.retries import RETRY_PAUSE_MS
from rebalance_lab.history.events import LAYER_OF, Kind
from rebalance_lab.history.reads import MOVED, POLLED
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.roles.values import told
from rebalance_lab.world.network import NetworkError
from rebalance_lab.world.ports import Environment

#: How long a leader waits for records before it answers that there are none (fetch.max.wait.ms).
MAX_WAIT_MS = 500


class PartitionReaderSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`epochs`, `validates`, `reset`: see `client.consumer`. `request_timeout_ms`: how long a broker may take to
    answer. `rereads`: plants a bug: after an error it goes on at the last record that it has read, not behind it."""

    connect: str
    session_timeout_ms: int
    topic: str
    partition: int = 0
    request_timeout_ms: int
    epochs: bool
    validates: bool
    reset: Reset
    rereads: bool = False


async def run(environment: Environment, spec: PartitionReaderSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("reader") as scope:
        scope.spawn(_read_along(environment, spec, registered), "reads")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


async def _read_along(environment: Environment, spec: PartitionReaderSpec, registered: RegisteredBrokers) -> None:
    consumer = Consumer(spec.topic, spec.partition, epochs=spec.epochs, validates=spec.validates, reset=spec.reset)
    while True:
        cluster = ClusterClient(
            environment.tasks,
            environment.network,
            list((await registered.addresses()).values()),
            spec.actor,
            request_timeout_ms=spec.request_timeout_ms,
        )
        try:
            await _poll(environment, spec, consumer, cluster)
        except (NoBroker, NetworkError, RefusedByBroker):
            if spec.rereads and consumer.position.offset:
                consumer.position = replace(consumer.position, offset=consumer.position.offset - 1)
            await environment.tasks.sleep(RETRY_PAUSE_MS * 1000)
        finally:
            cluster.close()


async def _poll(
    environment: Environment, spec: PartitionReaderSpec, consumer: Consumer, cluster: ClusterClient
) -> None:
    """Until an error, which it raises."""
    while True:
        found = await consumer.poll(cluster, max_wait_ms=MAX_WAIT_MS)
        if isinstance(found, Moved):
            _emit(environment, spec, MOVED, before=found.before, offset=found.offset, cause=found.cause.value)
        elif found:
            read = [(each.offset, each.leader_epoch, told(each.value)) for each in found]
            _emit(environment, spec, POLLED, records=read)


def _emit(environment: Environment, spec: PartitionReaderSpec, kind: Kind, **detail: object) -> None:
    environment.recorder.emit(
        LAYER_OF[kind], kind, member=spec.actor, topic=spec.topic, partition=spec.partition, detail=detail
    )


ROLE = Role("reader", PartitionReaderSpec, run)
