"""Topics in ZooKeeper, as an administrator changes them (`kafka.zk.AdminZkClient`, Kafka 3.9.1).

It writes what is wanted; the controller sees it and does it. The znodes of a configuration and of an assignment are not
written together, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.cluster import (
    TopicAssignment,
    assignment_payload,
    configuration_change_payload,
    configuration_payload,
    read_assignment,
    read_configuration,
    topic_id_bytes,
)
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.paths import BROKER_TOPICS, CONFIG_CHANGES, DELETE_TOPICS, topic_config_path, topic_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.zkclient.pipelined import PipelinedClient

Replicas = Mapping[int, Sequence[int]]


class TopicStore:
    """All methods raise SessionExpired."""

    def __init__(self, client: PipelinedClient) -> None:
        self._client = client

    async def names(self) -> tuple[str, ...]:
        return (await self._client.ask(lambda session: session.children(BROKER_TOPICS))).value.names

    async def assignment(self, topic: str) -> TopicAssignment:
        """Raises Refused if there is no such topic."""
        try:
            node = (await self._client.ask(lambda session: session.get(topic_path(topic)))).value
        except NoNode:
            raise unknown(topic) from None
        return read_assignment(topic, node.data)

    async def configuration(self, topic: str) -> dict[str, str]:
        """What the topic overrides; nothing if it has no configuration. Raises KafkaException if it is not readable."""
        path = topic_config_path(topic)
        try:
            node = (await self._client.ask(lambda session: session.get(path))).value
        except NoNode:
            return {}
        return read_configuration(path, node.data)

    async def is_marked_for_deletion(self, topic: str) -> bool:
        return await self._is_there(f"{DELETE_TOPICS}/{topic}")

    async def check_new(self, topic: str) -> None:
        """Raises Refused if the topic exists, is being deleted, or would collide with one that exists."""
        if await self.is_marked_for_deletion(topic):
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' is marked for deletion.")
        names = await self.names()
        if topic in names:
            raise exists(topic)
        colliding = [each for each in names if _collision(each) == _collision(topic)]
        if colliding:
            raise Refused(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{topic}' collides with existing topics: {', '.join(colliding)}",
            )

    async def create(self, topic: str, replicas: Replicas, config: Mapping[str, str], topic_id: bytes | None) -> None:
        """Raises Refused if it exists."""
        await self.write_configuration(topic, config, notify=False)
        path, payload = topic_path(topic), assignment_payload(replicas, topic_id)
        if not await self._client.create_if_missing(path, payload):
            there = (await self._client.ask(lambda session: session.get(path))).value.data
            if there != payload:  # it is ours if the reply to its creation was lost; topics have ids of their own
                raise exists(topic)

    async def grow(self, topic: str, known: TopicAssignment, new: Replicas) -> None:
        """Add partitions, whatever else was written since `known` was read: as in Kafka, without its version."""
        topic_id = None if known.topic_id is None else topic_id_bytes(known.topic_id)
        payload = assignment_payload({**known.replicas, **new}, topic_id)
        await self._client.ask(lambda session: session.set(topic_path(topic), payload))

    async def delete(self, topic: str) -> None:
        """Ask for its deletion; again is fine. Raises Refused if there is no such topic."""
        if not await self._is_there(topic_path(topic)):
            raise unknown(topic)
        await self._client.create_if_missing(f"{DELETE_TOPICS}/{topic}")

    async def write_configuration(self, topic: str, config: Mapping[str, str], *, notify: bool = True) -> None:
        """Replace what the topic overrides, and have all brokers told."""
        path, payload = topic_config_path(topic), configuration_payload(config)
        if not await self._client.create_if_missing(path, payload):
            await self._client.ask(lambda session: session.set(path, payload))
        if notify:
            change = configuration_change_payload(f"topics/{topic}")
            await self._client.ask(
                lambda session: session.create(f"{CONFIG_CHANGES}/config_change_", change, sequence=True)
            )

    async def _is_there(self, path: str) -> bool:
        return (await self._client.ask(lambda session: session.exists(path))).value is not None


def unknown(topic: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def exists(topic: str) -> Refused:
    return Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' already exists.")


def _collision(topic: str) -> str:
    """Topics with the same text share the names of metrics in Kafka, which refuses the second one."""
    return topic.replace(".", "_")
