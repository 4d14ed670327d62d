"""Requests for znodes, and what a controller makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from controller.cluster import LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import (
    TopicAssignment,
    read_configuration,
    read_registration,
    read_state,
    topic_id_bytes,
)
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import topic_config_path
from rebalance_lab.world.errors import NoNode, ZooKeeperError
from rebalance_lab.world.ports import Node
from rebalance_lab.zkclient.pipelined import Answer, Request

T = TypeVar("T")

#: The setting of a topic that lets a replica outside the ISR lead if no other is live.
UNCLEAN = "unclean.leader.election.enable"


def get(path: str, *, watch: bool = False) -> Request[Node]:
    return lambda session: session.get(path, watch=watch)


def those_there(names: Sequence[T], answers: Sequence[Answer[Node]]) -> Iterator[tuple[T, Node]]:
    """The znodes that are there. Raises other errors than NoNode."""
    for name, answer in zip(names, answers, strict=True):
        if not isinstance(answer.error, NoNode):
            yield name, answer.reply.value


def those_read(names: Sequence[T], nodes: Sequence[Node | ZooKeeperError]) -> Iterator[tuple[T, Node]]:
    """As `those_there`, of a multi-read."""
    for name, node in zip(names, nodes, strict=True):
        if isinstance(node, Node):
            yield name, node
        elif not isinstance(node, NoNode):
            raise node


def inside(folder: str, names: Sequence[str]) -> list[str]:
    """The paths of children."""
    return [f"{folder}/{each}" for each in names]


def contents(
    names: Sequence[str], answers: Sequence[Answer[Node]], read: Callable[[str, bytes], T], log: Callable[[str], None]
) -> Iterator[T]:
    """What is in the znodes that are there and can be read. Of the others it is logged why."""
    for name, node in those_there(names, answers):
        try:
            yield read(name, node.data)
        except KafkaException as error:
            log(str(error))


def live_brokers(ids: Sequence[int], answers: Sequence[Answer[Node]], log: Callable[[str], None]) -> list[LiveBroker]:
    """Those that are registered, by id. It is logged which are left out, and why."""
    found = []
    for broker_id, node in those_there(ids, answers):
        try:
            registration = read_registration(broker_id, node.data)
        except KafkaException as error:
            log(f"broker {broker_id} is left out: {error}")
            continue
        if registration.address is None:
            log(f"broker {broker_id} has no plaintext endpoint: it is left out")
            continue
        found.append(LiveBroker(broker_id, node.stat.czxid, *registration.address, registration.rack))
    return sorted(found, key=lambda each: each.broker_id)


def those_unclean(
    topics: Sequence[str], answers: Sequence[Answer[Node]], log: Callable[[str], None], *, default: bool
) -> set[str]:
    """The topics that allow unclean elections. `answers`: with the settings of each; those that cannot be read allow
    none. `default`: the brokers' setting."""
    allowed = dict.fromkeys(topics, default)
    for topic, node in those_there(topics, answers):
        try:
            text = read_configuration(topic_config_path(topic), node.data).get(UNCLEAN)
        except KafkaException as error:
            log(str(error))
            text = "false"
        if text is not None:
            allowed[topic] = text.strip().lower() == "true"
    return {each for each in topics if allowed[each]}


def read_topic(assignment: TopicAssignment) -> Topic:
    """Raises KafkaException."""
    return Topic(
        assignment.replicas,
        bytes(16) if assignment.topic_id is None else topic_id_bytes(assignment.topic_id),
        assignment.adding_replicas,
        assignment.removing_replicas,
    )


def those_stored(
    nodes: Iterable[tuple[TopicPartition, Node]], log: Callable[[str], None]
) -> dict[TopicPartition, Stored]:
    """The states in these znodes. Of those that cannot be read it is logged why."""
    found = {}
    for partition, node in nodes:
        try:
            found[partition] = read_stored(partition, node)
        except KafkaException as error:
            log(f"the state of {partition.topic}-{partition.partition}: {error}")
    return found


def read_stored(partition: TopicPartition, node: Node) -> Stored:
    """Raises KafkaException."""
    topic, number = partition
    state = read_state(topic, number, node.data)
    leadership = LeaderAndIsr(state.leader, state.leader_epoch, state.isr, recovering=state.leader_recovery_state != 0)
    return Stored(leadership, state.controller_epoch, node.stat.version)
