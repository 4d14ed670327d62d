"""The role of a client that writes numbered records with keys to a topic, changes the number of its partitions
meanwhile, and reads all of it in the end (`history.keyed`).

The key of a number is one of `keys`, in turn. Kafka's default partitioner chooses the partition, by the number of
partitions that the client knows. It asks for it again every `metadata_max_age_ms`, and after an error. A number that is
not acknowledged is sent again.
"""

from __future__ import annotations

from rebalance_lab.client.cluster import ClusterClient
from rebalance_lab.client.records import fetch, offset_at, produce
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.keyed import CONSUME_KEYED, PRODUCE_KEYED, RESIZE
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.log_client import RETRY_US, UNANSWERED
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rebalance_lab.wire.kafka.partitioner import partition_for
from rebalance_lab.wire.kafka.records import Record
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST
from rebalance_lab.world.ports import Environment


class KeyedClientSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`resizes`: once so many numbers are acknowledged, ask for so many partitions. `ignores_keys`: plants a bug: it
    writes to the partitions in turn, whatever the key."""

    connect: str
    session_timeout_ms: int
    topic: str
    messages: int
    keys: int
    pause_us: int
    metadata_max_age_ms: int
    resizes: tuple[tuple[int, int], ...]
    request_timeout_ms: int
    ignores_keys: bool = False


async def run(environment: Environment, spec: KeyedClientSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    client = _Client(environment, spec, registered)
    async with environment.tasks.scope("keyed client") as scope:
        scope.spawn(client.write_and_read(), "records")
        scope.spawn(client.resize(), "partitions")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


def key_of(number: int, keys: int) -> bytes:
    """The key of a number."""
    return b"k%d" % (number % keys)


class _Client:
    def __init__(self, environment: Environment, spec: KeyedClientSpec, registered: RegisteredBrokers) -> None:
        self._environment = environment
        self._spec = spec
        self._registered = registered
        self._tasks = environment.tasks
        self._acknowledged = environment.tasks.flag("a number is acknowledged")
        self._numbers = 0
        self._cluster: ClusterClient | None = None
        self._partitions = 0
        self._refreshed_us = 0

    # -- records ----------------------------------------------------------------------------

    async def write_and_read(self) -> None:
        for number in range(1, self._spec.messages + 1):
            while not await self._written(number):
                await self._tasks.sleep(RETRY_US)
            self._numbers = number
            self._acknowledged.raise_()
            await self._tasks.sleep(self._spec.pause_us)
        while not await self._read():
            await self._tasks.sleep(RETRY_US)

    async def _written(self, number: int) -> bool:
        spec, key = self._spec, key_of(number, self._spec.keys)
        try:
            cluster = await self._fresh()
            partition = number % self._partitions if spec.ignores_keys else partition_for(key, self._partitions)
            await cluster.reach_leader(spec.topic, partition)
        except UNANSWERED:
            self._disconnect()
            return False
        began = self._emit(Kind.INVOKED, PRODUCE_KEYED, number=number, key=key.decode())
        try:
            records = [Record(key, b"%d" % number)]
            offset = await produce(cluster, spec.topic, partition, records, timeout_ms=spec.request_timeout_ms)
        except UNANSWERED as error:
            self._emit(Kind.INFO, PRODUCE_KEYED, of=began, number=number, error=str(error))
            self._disconnect()
            return False
        done = {"number": number, "key": key.decode(), "partition": partition, "offset": offset}
        self._emit(Kind.OK, PRODUCE_KEYED, of=began, **done)
        return True

    async def _read(self) -> bool:
        """Whether all partitions were read, one after another."""
        began = self._emit(Kind.INVOKED, CONSUME_KEYED)
        found: list[tuple[int, int, str, int]] = []
        try:
            self._refreshed_us = 0
            cluster = await self._fresh()
            for partition in range(self._partitions):
                found += await self._read_partition(cluster, partition)
        except UNANSWERED as error:
            self._emit(Kind.FAILED_OP, CONSUME_KEYED, of=began, error=str(error))
            self._disconnect()
            return False
        self._emit(Kind.OK, CONSUME_KEYED, of=began, records=found)
        return True

    async def _read_partition(self, cluster: ClusterClient, partition: int) -> list[tuple[int, int, str, int]]:
        topic, found = self._spec.topic, []
        offset = await offset_at(cluster, topic, partition, EARLIEST)
        end = await offset_at(cluster, topic, partition, LATEST)
        while offset < end:
            fetched = await fetch(cluster, topic, partition, offset)
            for each in fetched.records:
                found.append((partition, each.offset, (each.key or b"").decode(), int(each.value or b"0")))
            offset = fetched.next_offset
        return found

    async def _fresh(self) -> ClusterClient:
        """A client that knows how many partitions there were not long ago. Raises what is in UNANSWERED."""
        now_us = self._tasks.now_us()
        if self._cluster is None:
            self._cluster = await self._client()
            self._refreshed_us = 0
        if self._refreshed_us == 0 or now_us - self._refreshed_us > self._spec.metadata_max_age_ms * 1000:
            (topic,) = await self._cluster.refresh([self._spec.topic])
            self._partitions, self._refreshed_us = len(topic.partitions), now_us
        return self._cluster

    async def _client(self) -> ClusterClient:
        return ClusterClient(
            self._tasks,
            self._environment.network,
            list((await self._registered.addresses()).values()),
            self._spec.actor,
            request_timeout_ms=self._spec.request_timeout_ms,
        )

    def _disconnect(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    # -- partitions -------------------------------------------------------------------------

    async def resize(self) -> None:
        for after, partitions in self._spec.resizes:
            while self._numbers < after:
                await self._acknowledged.wait()
                self._acknowledged.clear()
            while not await self._resized(partitions):
                await self._tasks.sleep(RETRY_US)

    async def _resized(self, partitions: int) -> bool:
        """Whether the controller has answered."""
        spec = self._spec
        began = self._emit(Kind.INVOKED, RESIZE, partitions=partitions)
        cluster = await self._client()
        wanted = CreatePartitionsTopic(name=spec.topic, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=spec.request_timeout_ms, validate_only=False)
        try:
            (answer,) = (await cluster.ask_controller(request)).results
        except UNANSWERED as error:
            self._emit(Kind.INFO, RESIZE, of=began, partitions=partitions, error=str(error))
            return False
        finally:
            cluster.close()
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._emit(Kind.OK, RESIZE, of=began, partitions=partitions)
            return True
        detail = {"partitions": partitions, "error": code.name, "message": answer.error_message}
        self._emit(Kind.FAILED_OP, RESIZE, of=began, **detail)
        return code is not ErrorCode.NOT_CONTROLLER

    def _emit(self, kind: Kind, op: str, **detail: object) -> int:
        """Record an event. Returns its number."""
        spec = self._spec
        event = self._environment.recorder.emit(
            Layer.OP, kind, member=spec.actor, topic=spec.topic, detail={"op": op, **detail}
        )
        return event[1]


ROLE = Role("keyed client", KeyedClientSpec, run)
