"""The role of a client of a broker: it produces numbered records, then reads the whole partition.

Each attempt to write is a pair of events, as ZooKeeper operations are: INVOKED (detail: op `produce`, number), then OK
(detail: offset), FAILED_OP for a write that the broker refused, or INFO for one that may have been done. An attempt
begins once the leader is connected, because nothing is sent before. The next one has the same number until one is
acknowledged, so a number may stand in the log twice. The read at the end is such a pair, too (op `consume`); its OK has
`records`, the offset and the number of each record, or, in place of the number, what a value is that no client writes
(`roles.values`).

With `unsynced` it also writes each number to another topic, with acks=0, which the broker does not sync: what a loss of
power takes from there proves that it takes what is not synced. These writes are not recorded.

An idempotent producer (KIP-98) also records the `sequence` of an attempt: producer id, epoch and sequence number.
Attempts with the same sequence are one batch, which brokers write once. A client that does not ask for acks=all records
its `acks` with each attempt.

With a `batch` of several records one request carries so many numbers. Each has events of its own, as if it were sent
alone; they share their outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.records import ACKS_ALL, ACKS_NONE, Producer, new_producer, produce, read_committed
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.writes import CONSUME, PRODUCE
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.roles.values import told_of, value_of
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Record
from rebalance_lab.world.network import NetworkError
from rebalance_lab.world.ports import Environment

RETRY_US = 100_000

PARTITION = 0

#: What a request may end in while the broker is away.
UNANSWERED = (NoBroker, NetworkError, RefusedByBroker)

#: Refusals after which the write is not in the log. After any other it may be: a leader that is deposed while it waits
#: for its followers answers NOT_LEADER_OR_FOLLOWER, and its successor may have the record.
NOT_WRITTEN = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)

#: An idempotent producer whose sequence the log does not know goes on with a new id.
SEQUENCE_LOST = frozenset(
    {
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class LogClientSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`messages`: how many numbers it writes, from 1. `pause_us`: between two. `value_bytes`: of each record.
    `request_timeout_ms`: how long a broker may take to answer, and to have a record committed. `acks`: who
    acknowledges. Without acks=all the client reads only once its last acknowledged record is committed, so leaders must
    not lose it. `batch`: how many numbers it sends in one request. `idempotent`: whether the log is to have each number
    once, however often it is sent. `unsynced`: the topic of which records may be lost, and how many partitions it has;
    None for none."""

    connect: str
    session_timeout_ms: int
    topic: str
    messages: int
    pause_us: int
    value_bytes: int
    request_timeout_ms: int
    acks: int = ACKS_ALL
    batch: int = 1
    idempotent: bool = False
    unsynced: tuple[str, int] | None = None


async def run(environment: Environment, spec: LogClientSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("client") as scope:
        scope.spawn(_Client(environment, spec, registered).work(), "work")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


class _Client:
    def __init__(self, environment: Environment, spec: LogClientSpec, registered: RegisteredBrokers) -> None:
        self._environment = environment
        self._spec = spec
        self._registered = registered
        self._tasks = environment.tasks
        self._cluster: ClusterClient | None = None
        self._producer: Producer | None = None
        #: Of the last acknowledged record.
        self._offset = -1

    async def work(self) -> None:
        end = self._spec.messages + 1
        for first in range(1, end, self._spec.batch):
            numbers = range(first, min(first + self._spec.batch, end))
            while not await self._written(numbers):
                await self._tasks.sleep(RETRY_US)
            for number in numbers:
                await self._tell_unsynced(number)
            await self._tasks.sleep(self._spec.pause_us)
        while not await self._read():
            await self._tasks.sleep(RETRY_US)

    async def _written(self, numbers: Sequence[int]) -> bool:
        """Whether one attempt to write these numbers, as one batch, was acknowledged."""
        try:
            cluster = await self._connected()
            if self._spec.idempotent and self._producer is None:
                self._producer = await new_producer(cluster)
            await cluster.reach_leader(self._spec.topic, PARTITION)
        except UNANSWERED:
            self._disconnect()
            return False
        began = [
            self._emit(Kind.INVOKED, op=PRODUCE, number=number, **self._sequence(at), **self._acks)
            for at, number in enumerate(numbers)
        ]
        try:
            offset = await produce(
                cluster,
                self._spec.topic,
                PARTITION,
                [Record(None, value_of(number, self._spec.value_bytes)) for number in numbers],
                acks=self._spec.acks,
                timeout_ms=self._spec.request_timeout_ms,
                producer=self._producer,
            )
        except UNANSWERED as error:
            code = error.code if isinstance(error, RefusedByBroker) else None
            kind = Kind.FAILED_OP if code in NOT_WRITTEN else Kind.INFO
            for of, number in zip(began, numbers, strict=True):
                self._emit(kind, op=PRODUCE, of=of, number=number, error=str(error))
            if code in SEQUENCE_LOST:
                self._producer = None
            self._disconnect()
            return False
        for at, (of, number) in enumerate(zip(began, numbers, strict=True)):
            self._offset = offset + at
            self._emit(Kind.OK, op=PRODUCE, of=of, number=number, offset=self._offset)
        return True

    async def _tell_unsynced(self, number: int) -> None:
        """If it fails, some later one will not."""
        if self._spec.unsynced is None or self._cluster is None:
            return
        topic, partitions = self._spec.unsynced
        record = Record(None, value_of(number, self._spec.value_bytes))
        with suppress(*UNANSWERED):
            await produce(self._cluster, topic, number % partitions, [record], acks=ACKS_NONE)

    def _sequence(self, at: int) -> dict[str, object]:
        """That of the record at this place in the next batch."""
        by = self._producer
        return {} if by is None else {"sequence": (by.producer_id, by.epoch, by.sequence_of(at))}

    @property
    def _acks(self) -> dict[str, object]:
        return {} if self._spec.acks == ACKS_ALL else {"acks": self._spec.acks}

    async def _read(self) -> bool:
        """Whether the whole partition was read."""
        began = self._emit(Kind.INVOKED, op=CONSUME)
        beyond = -1 if self._spec.acks == ACKS_ALL else self._offset
        try:
            found = await read_committed(await self._connected(), self._spec.topic, PARTITION, beyond=beyond)
        except UNANSWERED as error:
            self._emit(Kind.FAILED_OP, op=CONSUME, of=began, error=str(error))
            self._disconnect()
            return False
        if found is None:
            why = f"offset {beyond}, which was acknowledged, is not committed yet"
            self._emit(Kind.FAILED_OP, op=CONSUME, of=began, error=why)
            return False
        self._emit(Kind.OK, op=CONSUME, of=began, records=[(each.offset, told_of(each)) for each in found])
        return True

    async def _connected(self) -> ClusterClient:
        """A client of the brokers that are registered. Raises what is in UNANSWERED."""
        if self._cluster is None:
            addresses = list((await self._registered.addresses()).values())
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
