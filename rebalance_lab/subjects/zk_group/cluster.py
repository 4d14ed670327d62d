"""The cluster in ZooKeeper: the znodes of brokers, topics and groups, written and read through any session. They stand
in place of real brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from rebalance_lab.history.events import Kind, Layer, session_text
from rebalance_lab.kernel import Future
from rebalance_lab.kernel.errors import LabError
from rebalance_lab.wire.paths import broker_path, members_path, owner_path, owners_path, topic_path
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import ConnectionLoss, NodeExists, NoNode
from rebalance_lab.world.ports import GetRead, Node, ReadResult, RecorderPort, Reply, ZooKeeper
from rebalance_lab.zkclient.pipelined import PipelinedClient

#: The address in the znodes of the fixture's brokers; no process listens there.
FIXTURE_HOST = "localhost"
FIXTURE_PORT = 9092


class FixtureConflict(LabError):
    """A znode of the fixture exists with other content; it is left as it is."""


async def write_fixture(
    session: ZooKeeper, *, brokers: int, topics: Mapping[str, int], registered: bool = False
) -> list[str]:
    """Write brokers 0…n-1 (persistent, as no session stands for them; none if real brokers have `registered`) and
    topics (name to partition count, each partition on one broker in turn).

    Returns the paths created. A second call with the same arguments creates nothing. Raises FixtureConflict if a
    topic exists with another number of partitions.
    """
    created = []
    for parent in ("/brokers/ids", "/brokers/topics", "/consumers"):
        await PipelinedClient(session).ensure_path(parent)
    for broker in () if registered else range(brokers):
        created += await _create(session, broker_path(broker), broker_znode(broker), same_content=False)
    for topic, partitions in sorted(topics.items()):
        payload = topic_payload(_replicas(partitions, brokers))
        created += await _create(session, topic_path(topic), payload, same_content=True)
    return created


def broker_znode(broker: int) -> bytes:
    """The content of a fixture broker's znode."""
    return broker_payload(FIXTURE_HOST, FIXTURE_PORT + broker, timestamp_ms=0)


async def add_topic(session: ZooKeeper, topic: str, partitions: int, *, brokers: int, grow: bool) -> int:
    """Create a topic, or (`grow`) rewrite its znode with more partitions. Returns the zxid.
    Raises NodeExists, NoNode."""
    payload = topic_payload(_replicas(partitions, brokers))
    if grow:
        return (await session.set(topic_path(topic), payload)).zxid
    return (await session.create(topic_path(topic), payload)).zxid


def _replicas(partitions: int, brokers: int) -> dict[int, list[int]]:
    return {partition: [partition % max(brokers, 1)] for partition in range(partitions)}


async def _create(session: ZooKeeper, path: str, payload: bytes, *, same_content: bool) -> list[str]:
    try:
        await session.create(path, payload)
    except NodeExists:
        there = (await session.get(path)).value.data
        if same_content and there != payload:
            raise FixtureConflict(
                f"{path} exists already and holds {there.decode(errors='replace')}, not {payload.decode()}."
                " Choose another topic, or delete it first"
            ) from None
        return []
    return [path]


#: Written before a look at an ensemble. A server answers a write once it has applied it, and all
#: that was committed before: the reads that follow on the session are as new as this.
PROBE = "/rebalance-lab"

#: How often the runner repeats a request after a lost connection. Each time it waits for the next connection.
ASK_LIMIT = 100

T = TypeVar("T")


class Cluster:
    """The runner's own session, and what it has written."""

    def __init__(self, session: ZooKeeper, recorder: RecorderPort, *, servers: int) -> None:
        self.topics: dict[str, int] = {}
        self.brokers: list[int] = []
        self.groups: list[str] = []
        self._session = session
        self._recorder = recorder
        self._several = servers > 1

    async def prepare(self, brokers: int, topics: Mapping[str, int], *, real: bool = False) -> None:
        """Write brokers 0…n-1 and topics to an empty ZooKeeper. `real`: that many real brokers run and have
        registered; then wait until their controller has given every partition a leader."""
        await write_fixture(self._session, brokers=brokers, topics=topics, registered=real)
        for topic, partitions in topics.items() if real else ():
            for partition in range(partitions):
                await self._there(f"{topic_path(topic)}/partitions/{partition}/state")
        self.brokers = list(range(brokers))
        self.topics = dict(topics)
        if self._several:
            await PipelinedClient(self._session).ensure_path(PROBE)

    async def _there(self, path: str) -> None:
        """Wait until the znode exists, by a watch."""
        while (reply := await self._session.exists(path, watch=True)).value is None and reply.watch is not None:
            await reply.watch

    async def add_group(self, group: str) -> None:
        """Create the group's parent znode, which its first member would create."""
        if group not in self.groups:
            await PipelinedClient(self._session).ensure_path(members_path(group))
            self.groups.append(group)

    async def set_topic(self, topic: str, partitions: int) -> int:
        """Create a topic, or give it more partitions, as an administrator does. Returns the zxid, like all writes
        here."""
        grow = topic in self.topics
        zxid = await add_topic(self._session, topic, partitions, brokers=len(self.brokers), grow=grow)
        self.topics[topic] = partitions
        return zxid

    async def add_broker(self, broker: int) -> int:
        """Create a broker's znode. It is persistent, as no session stands for it."""
        reply = await self._session.create(broker_path(broker), broker_znode(broker))
        self.brokers.append(broker)
        return reply.zxid

    async def remove_broker(self, broker: int) -> int:
        """Delete a broker's znode."""
        reply = await self._session.delete(broker_path(broker))
        self.brokers.remove(broker)
        return reply.zxid

    async def claimed(self, group: str, topic: str, partition: int) -> None:
        """Wait until an owner znode exists, by a watch."""
        there = await self._session.exists(owner_path(group, topic, partition), watch=True)
        if there.value is None and there.watch is not None:
            await there.watch

    async def obstruct(self, group: str, topic: str) -> int:
        """Create another program's ephemeral znode where a topic's owner znodes belong, so that nothing can be
        created below it. Raises NodeExists."""
        path = owners_path(group, topic)
        await PipelinedClient(self._session).ensure_path(path.rpartition("/")[0])
        return (await self._session.create(path, b"", ephemeral=True)).zxid

    async def clear(self, group: str, topic: str) -> int:
        """Delete the znode of `obstruct`."""
        return (await self._session.delete(owners_path(group, topic))).zxid

    async def write_probe(self) -> int:
        """Write something that no member watches; returns its zxid."""
        return (await self._asked(lambda: self._session.set(PROBE, b""))).zxid

    async def observe(self) -> None:
        """Record registrations and owners of every group, read by the runner."""
        if self._several:
            await self.write_probe()
        for group in self.groups:
            names, zxid = await self._names(members_path(group))
            self._observed(group, members_path(group), names, zxid)
            for topic in sorted(self.topics):
                await self._observe_owners(group, topic)

    async def _observe_owners(self, group: str, topic: str) -> None:
        path = owners_path(group, topic)
        names, zxid = await self._names(path)
        numbers = sorted(int(name) for name in names)
        reads = [GetRead(owner_path(group, topic, number)) for number in numbers]
        found: Sequence[ReadResult] = ()
        owners_zxid = zxid
        if reads:
            reply = await self._asked(lambda: self._session.multi_read(reads))
            found, owners_zxid = reply.value, reply.zxid
        nodes = {str(number): node for number, node in zip(numbers, found, strict=True) if isinstance(node, Node)}
        self._observed(
            group,
            path,
            names,
            zxid,
            topic=topic,
            owners={name: node.data.decode("utf-8", "replace") for name, node in nodes.items()},
            sessions={name: session_text(node.stat.ephemeral_owner) for name, node in nodes.items()},
            owners_zxid=owners_zxid,
        )

    async def _names(self, path: str) -> tuple[tuple[str, ...], int]:
        try:
            reply = await self._asked(lambda: self._session.children(path))
        except NoNode as missing:
            return (), missing.zxid
        return reply.value.names, reply.zxid

    async def _asked(self, ask: Callable[[], Future[Reply[T]]]) -> Reply[T]:
        """Repeat a request whose connection was lost, if it may be repeated, as servers may be the target of faults."""
        for _ in range(ASK_LIMIT):
            try:
                return await ask()
            except ConnectionLoss:
                continue
        raise ConnectionLoss(f"no answer {ASK_LIMIT} times running", PROBE)

    def _observed(
        self, group: str, path: str, names: tuple[str, ...], zxid: int, topic: str | None = None, **more: object
    ) -> None:
        detail: dict[str, object] = {"path": path, "children": list(names), **more}
        self._recorder.emit(Layer.OP, Kind.OBSERVED, group=group, topic=topic, zxid=zxid, detail=detail)
