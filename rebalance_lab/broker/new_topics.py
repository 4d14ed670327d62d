"""New topics and new partitions: what is checked, and where the replicas go (`kafka.server.ZkAdminManager`, 3.9.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import structs

from controller.placement import InvalidPartitions, PlacementError, RacksMissing, Start, place, place_wrongly
from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.log.names import InvalidTopic, check_topic
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.settings import InvalidSetting, check_settings
from rebalance_lab.broker.topic_store import unknown
from rebalance_lab.wire.cluster import TopicAssignment
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: In a request: the broker's default.
DEFAULT = -1

#: Partitions that a topic may have. Kafka has no limit of its own, and runs out of memory.
MOST_PARTITIONS = 10_000

Replicas = dict[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. `partitions`, `replication`: DEFAULT for the broker's. `replicas`: an assignment of the
    client's own, in place of both."""

    name: str
    partitions: int = DEFAULT
    replication: int = DEFAULT
    replicas: Mapping[int, Sequence[int]] = field(default_factory=dict)
    config: Mapping[str, str | None] = field(default_factory=dict)


async def create_topics(
    parts: Parts, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
) -> dict[str, Refused | Replicas]:
    """Topic -> the replicas that it was given, or why it was not created."""
    work = {each.name: partial(_created, parts, each, validate_only=validate_only) for each in topics}
    return await parts.outcomes(work, timeout_ms)


async def _created(parts: Parts, topic: NewTopic, *, validate_only: bool) -> Replicas:
    """Raises Refused."""
    try:
        check_topic(topic.name)
    except InvalidTopic as error:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from None
    await parts.topics.check_new(topic.name)
    replicas = _replicas(parts, topic)
    config = _config(topic)
    if not validate_only:
        topic_id = parts.random.bits(128).to_bytes(16, "big")
        await parts.topics.create(topic.name, replicas, config, topic_id)
    return replicas


def _replicas(parts: Parts, topic: NewTopic) -> Replicas:
    """Raises Refused."""
    if topic.replicas:
        if (topic.partitions, topic.replication) != (DEFAULT, DEFAULT):
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        return _checked(topic.replicas)
    config = parts.config
    partitions = config.num_partitions if topic.partitions == DEFAULT else topic.partitions
    replication = config.default_replication_factor if topic.replication == DEFAULT else topic.replication
    brokers = len(parts.metadata.nodes)
    start = Start(parts.random.below(brokers), parts.random.below(brokers)) if brokers else Start.fixed(0)
    return _placed(parts, partitions, replication, start)


def _placed(parts: Parts, partitions: int, replication: int, start: Start) -> Replicas:
    """Raises Refused."""
    _check_number(start.partition + partitions)
    nodes = parts.metadata.nodes
    racks = {each.broker_id: each.rack for each in nodes.values() if each.rack is not None}
    bug = parts.config.lab_placement_bug
    try:
        if bug is not None:
            return place_wrongly(bug, sorted(nodes), partitions, replication, start)
        return place(sorted(nodes), partitions, replication, start, racks)
    except RacksMissing as error:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
    except InvalidPartitions as error:
        raise Refused(ErrorCode.INVALID_PARTITIONS, str(error)) from None
    except PlacementError as error:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from None


def _check_number(partitions: int) -> None:
    """Raises Refused."""
    if partitions > MOST_PARTITIONS:
        raise Refused(
            ErrorCode.POLICY_VIOLATION, f"{partitions} partitions; the limit of this broker is {MOST_PARTITIONS}"
        )


def _checked(replicas: Mapping[int, Sequence[int]]) -> Replicas:
    """A client's own assignment; its brokers need not be live, as in Kafka. Raises Refused."""
    _check_number(len(replicas))
    if len({len(each) for each in replicas.values()}) != 1:
        raise _bad_assignment("All partitions should have the same number of replicas")
    for partition, brokers in replicas.items():
        if not brokers or len(set(brokers)) != len(brokers):
            raise _bad_assignment(f"Duplicate or no replicas for partition {partition}: {list(brokers)}")
        if min(brokers) < 0:
            raise _bad_assignment(f"There is no broker {min(brokers)}, which is to hold partition {partition}")
    if sorted(replicas) != list(range(len(replicas))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return {each: tuple(brokers) for each, brokers in sorted(replicas.items())}


def _config(topic: NewTopic) -> dict[str, str]:
    """Raises Refused."""
    without = [name for name, value in topic.config.items() if value is None]
    if without:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without)}")
    config = {name: value for name, value in topic.config.items() if value is not None}
    try:
        check_settings(config)
    except InvalidSetting as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    return config


# -- more partitions ------------------------------------------------------------------------------


async def add_partitions(
    parts: Parts, topic: str, count: int, assignments: Sequence[Sequence[int]] | None, *, validate_only: bool
) -> None:
    """Let a topic have `count` partitions. A topic never has fewer than before (claim P3). `assignments`: the brokers
    of each new partition, if the client chooses them. Raises Refused."""
    if await parts.topics.is_marked_for_deletion(topic):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic '{topic}' is being deleted.")
    try:
        known = await parts.topics.assignment(topic)
    except KafkaException as error:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
    before = known.replicas
    if not before:
        raise unknown(topic)
    if count < len(before):
        if parts.config.lab_removes_partitions:
            kept = {each: replicas for each, replicas in before.items() if each < count}
            await parts.topics.grow(topic, structs.replace(known, partitions={}), kept)
            return
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(before)} partitions, which is higher than the requested {count}.",
        )
    if count == len(before):
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {len(before)} partitions.")
    new = _new_partitions(parts, topic, known, count, assignments)
    if not validate_only:
        await parts.topics.grow(topic, known, new)


def _new_partitions(
    parts: Parts, topic: str, known: TopicAssignment, count: int, assignments: Sequence[Sequence[int]] | None
) -> Replicas:
    """Raises Refused."""
    before = known.replicas
    if known.adding_replicas or known.removing_replicas:
        raise Refused(
            ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition reassignment is in progress for the topic '{topic}'."
        )
    first = before.get(0)
    if first is None:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic {topic} has no partition 0, which the others follow")
    if assignments is not None:
        return _own_partitions(parts, before, count, assignments)
    brokers = sorted(parts.metadata.nodes)
    index = next((at for at, broker in enumerate(brokers) if broker >= first[0]), 0)
    return _placed(parts, count - len(before), len(first), Start.fixed(index, len(before)))


def _own_partitions(parts: Parts, before: Replicas, count: int, assignments: Sequence[Sequence[int]]) -> Replicas:
    """Raises Refused."""
    _check_number(count)
    unknown_brokers = sorted({each for brokers in assignments for each in brokers} - parts.metadata.nodes.keys())
    if unknown_brokers:
        raise _bad_assignment(f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown_brokers))}.")
    if len(assignments) != count - len(before):
        raise _bad_assignment(
            f"Increasing the number of partitions by {count - len(before)} but {len(assignments)} assignments provided."
        )
    for brokers in assignments:
        if len(brokers) != len(before[0]) or len(set(brokers)) != len(brokers):
            raise _bad_assignment(
                f"Each new partition needs {len(before[0])} different replicas, as partition 0 has; not {list(brokers)}"
            )
    return {len(before) + at: tuple(brokers) for at, brokers in enumerate(assignments)}


def _bad_assignment(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
