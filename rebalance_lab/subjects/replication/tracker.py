"""What a runner follows of trials of replicated partitions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rebalance_lab.broker import halting
from rebalance_lab.history.creations import CREATE_TOPIC
from rebalance_lab.history.duties import LOOK
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.keyed import CONSUME_KEYED, KEYED, RESIZE
from rebalance_lab.history.reads import MOVED, POLLED, position_after
from rebalance_lab.history.replicas import (
    APPENDED,
    CONTROLS,
    CONTROLS_NO_MORE,
    FOLLOWS,
    LEADS,
    READ_REPLICA,
    REPLICA_ENDED,
    TRUNCATED,
)
from rebalance_lab.history.writes import PRODUCE, REPORTED
from rebalance_lab.subjects.broker_log.subject import TOPIC, LogTracker
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_assignment, read_controller, read_state
from rebalance_lab.wire.paths import CONTROLLER, partition_of_state, partition_state_path, topic_path

PARTITION = 0
STATE_PATH = partition_state_path(TOPIC, PARTITION)
ASSIGNMENT_PATH = topic_path(TOPIC)


@dataclass(slots=True)
class ReplicationTracker(LogTracker):
    """It also counts reads of replicas, the cuts that each broker has made in its log as a follower and the topics that
    brokers have created or refused, and follows the controller, the assignment, the state znode and what brokers
    believe. `largest_batch`: the most records that a leader has written at once. `roles`: (broker, topic, partition) ->
    the leader epoch in which it leads or follows. `led`: broker -> the last leader epoch in which it believed that it
    leads. `reigns`: of controllers, so far; `believed`: those that began as a broker knows; `reigned`: broker -> the
    last controller epoch in which it believed that it controls; `resigned`: broker -> the last one, when it no longer
    did. `appended_us`: broker -> when it has written its last batch as a leader. `linked_us`: (node, peer) -> when the
    node's process has last cut, slowed or healed its link to the peer. `writing`: whether a client waits for the answer
    to a write; `unanswered`: writes whose outcome the client does not know. `resizes_answered`: requests for another
    number of partitions, and whether the topic with keys was read. `counting`, `halted`: what brokers have reported of
    the operations of their controllers (`broker.halting`), and `operations`, how many of them. `look`: the last one of
    an inspector that it has ended, and when that began. `states`: of all partitions, by their paths. `position`: of the
    reader that reads along; `moves`: how often it was moved."""

    replicas_read: set[int] = field(default_factory=set)
    largest_batch: int = 0
    appended_us: dict[str, int] = field(default_factory=dict)
    linked_us: dict[tuple[str, str], int] = field(default_factory=dict)
    writing: bool = False
    unanswered: int = 0
    position: int = 0
    moves: int = 0
    roles: dict[tuple[str, str | None, int | None], int] = field(default_factory=dict)
    cuts: Counter[str] = field(default_factory=Counter)
    led: dict[str, int] = field(default_factory=dict)
    followed: dict[str, int] = field(default_factory=dict)
    creations_answered: int = 0
    resizes_answered: int = 0
    keyed_read: bool = False
    counting: Event | None = None
    halted: Event | None = None
    operations: int = 0
    look: Event | None = None
    look_began_us: int = 0
    _looks_since_us: int = 0
    states: dict[str, LeaderIsrAndControllerEpoch] = field(default_factory=dict)
    controller: int | None = None
    reigns: int = 0
    believed: int = 0
    reigned: dict[str, int] = field(default_factory=dict)
    resigned: dict[str, int] = field(default_factory=dict)
    assigned: tuple[int, ...] = ()
    state: LeaderIsrAndControllerEpoch | None = None

    def feed(self, event: Event) -> bool:
        if event.of("op") == PRODUCE:
            self.writing = event.kind is Kind.INVOKED
        return (
            self._of_registry(event)
            or self._of_brokers(event)
            or self._of_clients(event)
            or LogTracker.feed(self, event)
        )

    def _of_clients(self, event: Event) -> bool:
        if event.kind is Kind.OK and event.of("op") == READ_REPLICA:
            self.replicas_read.add(int(str(event.of("broker"))))
        elif event.kind in {Kind.OK, Kind.FAILED_OP} and event.of("op") == CREATE_TOPIC:
            self.creations_answered += 1
        elif event.kind is Kind.INFO and event.of("op") == PRODUCE:
            self.unanswered += 1
        elif event.kind in {Kind.OK, Kind.FAILED_OP} and event.of("op") in KEYED:
            self.resizes_answered += event.of("op") == RESIZE
            self.keyed_read |= event.kind is Kind.OK and event.of("op") == CONSUME_KEYED
        elif event.kind in {POLLED, MOVED}:
            self.position = position_after(event)
            self.moves += event.kind is MOVED
        elif event.of("op") == LOOK:
            self._look(event)
        else:
            return False
        return True

    def _role(self, event: Event) -> None:
        replica = event.actor, event.topic, event.partition
        if event.kind is REPLICA_ENDED:
            self.roles.pop(replica, None)
        else:
            self.roles[replica] = int(str(event.of("leader_epoch")))

    def _of_brokers(self, event: Event) -> bool:
        if event.kind in {LEADS, FOLLOWS, REPLICA_ENDED}:
            self._role(event)
        if event.kind is APPENDED:
            records = int(str(event.of("last"))) - int(str(event.of("first"))) + 1
            self.largest_batch = max(self.largest_batch, records)
            self.appended_us[event.actor] = event.at_us
        elif event.kind is Kind.LINK_SET:
            self.linked_us[event.actor, str(event.of("peer"))] = event.at_us
        elif event.kind is TRUNCATED:
            self.cuts[event.actor] += 1
        elif event.kind is LEADS:
            self.led[event.actor] = int(str(event.of("leader_epoch")))
        elif event.kind is CONTROLS:
            self.believed += 1
            self.reigned[event.actor] = int(str(event.of("epoch")))
        elif event.kind is CONTROLS_NO_MORE:
            self.resigned[event.actor] = self.reigned[event.actor]
        elif event.kind is FOLLOWS:
            self.followed[event.actor] = int(str(event.of("leader")))
        elif event.kind is REPORTED and event.of("event") in halting.REPORTS:
            self._operation(event)
        else:
            return False
        return True

    def _of_registry(self, event: Event) -> bool:
        path = str(event.of("path"))
        if event.kind is Kind.DELETED and path == CONTROLLER:
            self.controller = None
        elif event.kind is Kind.DELETED and partition_of_state(path):
            self.states.pop(path, None)
        elif event.kind not in {Kind.CREATED, Kind.CHANGED}:
            return False
        elif event.kind is Kind.CREATED and path == CONTROLLER:
            self.controller = read_controller(_data(event)).brokerid
            self.reigns += 1
        elif path == ASSIGNMENT_PATH:
            self.assigned = read_assignment(TOPIC, _data(event)).replicas[PARTITION]
        elif place := partition_of_state(path):
            self.states[path] = read_state(*place, _data(event))
            if path == STATE_PATH:
                self.state = self.states[path]
        else:
            return False
        return True

    def _look(self, event: Event) -> None:
        if event.kind is Kind.INVOKED:
            self._looks_since_us = event.at_us
        elif event.kind is Kind.OK:
            self.look, self.look_began_us = event, self._looks_since_us

    def _operation(self, event: Event) -> None:
        match event.of("event"):
            case halting.COUNTS:
                self.counting = event
            case halting.HALTS:
                self.halted = event
            case _:
                self.operations += 1


def _data(event: Event) -> bytes:
    """Of a znode that was written."""
    return str(event.of("data")).encode()
