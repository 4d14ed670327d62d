"""What a member reads of its group, one znode per request, in the order of 0.8.2.2
(`ZookeeperConsumerConnector.rebalance`, `ZkUtils.getConsumersPerTopic`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_lab.assignors import AssignmentContext, TopicPartition
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    broker_path,
    member_path,
    members_path,
    offset_path,
    topic_path,
)
from rebalance_lab.wire.payloads import Broker, read_broker, read_partitions
from rebalance_lab.wire.registration import read_registration
from rebalance_lab.wire.view_digest import view_digest
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import Node
from rebalance_lab.zkclient import ZkClient
from rebalance_lab.zkclient.helpers import children_or_none, read_or_none
from zkconsumer.contexts import Threads, group_threads, named_threads, threads_of

#: The start offset where none is stored.
NO_OFFSET = -1

#: The zxid of a list of members that does not exist.
NO_ZXID = -1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one attempt decides on. `members`: the ids that were listed; `members_zxid`: the pzxid
    of that list, which names it exactly; NO_ZXID where there was none."""

    context: AssignmentContext
    members: tuple[str, ...]
    members_zxid: int

    @property
    def digest(self) -> str:
        """16 hex digits; equal where members and the partitions of this member's topics are."""
        return view_digest(self.members, self.context.partitions)


class GroupView:
    """Reads of one member. All of them raise what ZooKeeper answers, and KafkaException for a
    payload that Kafka could not read; in a rebalance either is a failed attempt."""

    def __init__(
        self,
        client: ZkClient,
        *,
        group: str,
        consumer_id: str,
        exclude_internal: bool,
        multi_read: bool = False,
        skip_vanished: bool = False,
    ) -> None:
        """`multi_read`, `skip_vanished`: the cures of these names (`zkconsumer.lab_settings.Cures`)."""
        self._client = client
        self._group = group
        self._consumer_id = consumer_id
        self._exclude_internal = exclude_internal
        self._multi_read = multi_read
        self._skip_vanished = skip_vanished

    async def cluster(self) -> tuple[Broker, ...]:
        """All brokers (`ZkUtils.getCluster`): 1+B reads. NoNode when one vanishes meanwhile."""
        ids = await children_or_none(self._client, BROKER_IDS)
        return tuple([read_broker(int(each), (await self._client.read(broker_path(each))).data) for each in ids])

    async def brokers(self) -> tuple[Broker, ...]:
        """All brokers (`ZkUtils.getAllBrokersInCluster`): 1+B reads. One that vanishes
        meanwhile is left out."""
        found = []
        for each in await children_or_none(self._client, BROKER_IDS):
            data = await read_or_none(self._client, broker_path(each))
            if data is not None:
                found.append(read_broker(int(each), data))
        return tuple(found)

    async def threads(self, consumer_id: str) -> Threads:
        """topic -> thread ids of one member, from and in the order of its registration: 1 read,
        and the list of all topics for a wildcard. Raises NoNode when it is not registered."""
        data = (await self._client.read(member_path(self._group, consumer_id))).data
        return await self._threads_in(consumer_id, data)

    async def _threads_in(self, consumer_id: str, data: bytes) -> Threads:
        named = named_threads(consumer_id, data)
        if named is not None:
            return named
        topics = await self.topics()
        return threads_of(consumer_id, read_registration(data), topics, exclude_internal=self._exclude_internal)

    async def topics(self) -> tuple[str, ...]:
        """All topics there are: 1 read."""
        return await children_or_none(self._client, BROKER_TOPICS)

    async def snapshot(self) -> Snapshot:
        """Everything the assignor needs: 3+T+C reads and the lists of topics for wildcards; with
        `multi_read` one request does the C."""
        mine = await self.threads(self._consumer_id)
        partitions = {topic: await self._partitions(topic) for topic in mine}
        members, members_zxid = await self._members()
        threads = group_threads(await self._threads_of_all(members))
        await self._client.children(members_path(self._group))  # 0.8.2 reads them once more, to log them
        context = AssignmentContext(self._group, self._consumer_id, mine, partitions, threads)
        return Snapshot(context, members, members_zxid)

    async def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each partition starts: 1 read each; NO_OFFSET where nothing is stored.

        Raises ValueError for a stored text that is not a number.
        """
        found = {}
        for each in partitions:
            data = await read_or_none(self._client, offset_path(self._group, each.topic, each.partition))
            found[each] = NO_OFFSET if data is None else int(data)
        return found

    async def _partitions(self, topic: str) -> tuple[int, ...]:
        data = await read_or_none(self._client, topic_path(topic))
        return () if data is None else read_partitions(topic, data)

    async def _members(self) -> tuple[tuple[str, ...], int]:
        try:
            found = await self._client.children(members_path(self._group))
        except NoNode:
            return (), NO_ZXID
        return found.names, found.stat.pzxid

    async def _threads_of_all(self, members: tuple[str, ...]) -> list[Threads]:
        """The threads of each member, in the order of the list. A member that has left meanwhile is an error (F3)."""
        found: list[Threads] = []
        if self._multi_read:
            nodes = await self._client.read_all([member_path(self._group, each) for each in members])
            for each, node in zip(members, nodes, strict=True):
                if isinstance(node, Node):
                    found.append(await self._threads_in(each, node.data))
                elif not (isinstance(node, NoNode) and self._skip_vanished):
                    raise node
            return found
        for each in members:
            try:
                found.append(await self.threads(each))
            except NoNode:
                if not self._skip_vanished:
                    raise
        return found
