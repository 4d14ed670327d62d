"""Requests for znodes, and what a controller makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from controller.cluster import Stored, Topic
from controller.leader_election import LeaderAndIsr
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import TopicAssignment, read_state, topic_id_bytes
from rebalance_lab.world.errors import NoNode, ZooKeeperError
from rebalance_lab.world.ports import Node
from rebalance_lab.zkclient.pipelined import Answer, Request

T = TypeVar("T")


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


def read_topic(assignment: TopicAssignment) -> Topic:
    """Raises KafkaException."""
    return Topic(
        assignment.replicas,
        bytes(16) if assignment.topic_id is None else topic_id_bytes(assignment.topic_id),
        {int(each): its for each, its in assignment.adding_replicas.items()},
        {int(each): its for each, its in assignment.removing_replicas.items()},
    )


def read_stored(partition: TopicPartition, node: Node) -> Stored:
    """Raises KafkaException."""
    state = read_state(*partition, node.data)
    leadership = LeaderAndIsr(state.leader, state.leader_epoch, state.isr, recovering=bool(state.leader_recovery_state))
    return Stored(leadership, state.controller_epoch, node.stat.version)
