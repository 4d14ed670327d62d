"""The role of a client of a broker: it produces numbered records with acks=all, then reads the whole partition.

Each attempt to write is a pair of events, as ZooKeeper operations are: INVOKED (detail: op `produce`, number), then OK
(detail: offset), FAILED_OP for a write that the broker refused, or INFO for one that may have been done. The next
attempt has the same number until one is acknowledged, so a number may stand in the log twice. The read at the end is
such a pair, too (op `consume`); its OK has `records`, the offset and the number of each record.
"""

from __future__ import annotations

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.records import fetch, offset_at, produce
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.writes import CONSUME, PRODUCE
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.registered import registered
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Record
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST
from rebalance_lab.world.network import NetworkError
from rebalance_lab.world.ports import Environment
from rebalance_lab.zkclient.pipelined import PipelinedClient

RETRY_US = 100_000

PARTITION = 0

#: What a request may end in while the broker is away.
UNANSWERED = (NoBroker, NetworkError, RefusedByBroker)

#: Refusals after which the write may still be in the log. A leader that is deposed while it waits for its followers
#: answers NOT_LEADER_OR_FOLLOWER, and its successor may have the record.
MAY_BE_WRITTEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)


class LogClientSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`messages`: how many numbers it writes, from 1. `pause_us`: between two. `value_bytes`: of each record.
    `request_timeout_ms`: how long a broker may take to answer, and to have a record committed."""

    connect: str
    session_timeout_ms: int
    topic: str
    messages: int
    pause_us: int
    value_bytes: int
    request_timeout_ms: int


async def run(environment: Environment, spec: LogClientSpec, closing: Flag) -> None:
    session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("client") as scope:
        scope.spawn(_Client(environment, spec, PipelinedClient(session)).work(), "work")
        await closing.wait()
        scope.cancel("asked to leave")
    await session.close()


class _Client:
    def __init__(self, environment: Environment, spec: LogClientSpec, zookeeper: PipelinedClient) -> None:
        self._environment = environment
        self._spec = spec
        self._zookeeper = zookeeper
        self._tasks = environment.tasks
        self._cluster: ClusterClient | None = None

    async def work(self) -> None:
        for number in range(1, self._spec.messages + 1):
            while not await self._written(number):
                await self._tasks.sleep(RETRY_US)
            await self._tasks.sleep(self._spec.pause_us)
        while not await self._read():
            await self._tasks.sleep(RETRY_US)

    async def _written(self, number: int) -> bool:
        """Whether one attempt to write a number was acknowledged."""
        try:
            cluster = await self._connected()
        except UNANSWERED:
            self._disconnect()
            return False
        began = self._emit(Kind.INVOKED, op=PRODUCE, number=number)
        value = str(number).encode().ljust(self._spec.value_bytes)
        try:
            offset = await produce(
                cluster,
                self._spec.topic,
                PARTITION,
                [Record(None, value)],
                timeout_ms=self._spec.request_timeout_ms,
            )
        except UNANSWERED as error:
            refused = isinstance(error, RefusedByBroker) and error.code not in MAY_BE_WRITTEN
            self._emit(Kind.FAILED_OP if refused else Kind.INFO, op=PRODUCE, of=began, number=number, error=str(error))
            self._disconnect()
            return False
        self._emit(Kind.OK, op=PRODUCE, of=began, number=number, offset=offset)
        return True

    async def _read(self) -> bool:
        """Whether the whole partition was read."""
        began = self._emit(Kind.INVOKED, op=CONSUME)
        found: list[tuple[int, int]] = []
        try:
            cluster, topic = await self._connected(), self._spec.topic
            offset = await offset_at(cluster, topic, PARTITION, EARLIEST)
            end = await offset_at(cluster, topic, PARTITION, LATEST)
            while offset < end:
                fetched = await fetch(cluster, topic, PARTITION, offset)
                found += ((each.offset, int(each.value or b"0")) for each in fetched.records)
                offset = fetched.next_offset
        except UNANSWERED as error:
            self._emit(Kind.FAILED_OP, op=CONSUME, of=began, error=str(error))
            self._disconnect()
            return False
        self._emit(Kind.OK, op=CONSUME, of=began, records=found)
        return True

    async def _connected(self) -> ClusterClient:
        """A client of the broker that is registered. Raises what is in UNANSWERED."""
        if self._cluster is None:
            addresses = list((await registered(self._zookeeper)).values())
            cluster = ClusterClient(
                self._tasks,
                self._environment.network,
                addresses,
                self._spec.actor,
                request_timeout_ms=self._spec.request_timeout_ms,
            )
            await cluster.refresh([self._spec.topic], create=True)
            self._cluster = cluster
        return self._cluster

    def _disconnect(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _emit(self, kind: Kind, **detail: object) -> int:
        """Record an event. Returns its number."""
        spec = self._spec
        event = self._environment.recorder.emit(
            Layer.OP, kind, member=spec.actor, topic=spec.topic, partition=PARTITION, detail=detail
        )
        return event[1]


ROLE = Role("client", LogClientSpec, run)
