"""The state znodes of partitions, and their assignments, as the registry's events hold them."""

from __future__ import annotations

import re
from typing import NamedTuple

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_assignment, read_state


class Place(NamedTuple):
    """A partition; as text `t1-0`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Stood(NamedTuple):
    """A state that stood in a state znode from the time of `event` until `until_us`."""

    event: Event
    state: LeaderIsrAndControllerEpoch
    until_us: int


_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC = re.compile(r"/brokers/topics/([^/]+)")


def place_of(event: Event) -> Place:
    """The partition that an event is about; -1 if it is about none."""
    return Place(str(event.topic), -1 if event.partition is None else event.partition)


def partition_states(history: History) -> dict[Place, list[tuple[Event, LeaderIsrAndControllerEpoch]]]:
    """The states that stood in each partition's state znode, in their order. Raises MalformedPayload."""
    found: dict[Place, list[tuple[Event, LeaderIsrAndControllerEpoch]]] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED):
        match = _STATE.fullmatch(str(event.of("path")))
        if match:
            place = Place(match[1], int(match[2]))
            state = read_state(*place, str(event.of("data")).encode())
            found.setdefault(place, []).append((event, state))
    return found


def stood(history: History, end_us: int) -> dict[Place, list[Stood]]:
    """The states of each partition with the times for which they stood; the last one until `end_us`. Raises
    MalformedPayload."""
    found = {}
    for place, states in partition_states(history).items():
        untils_us = [*(event.at_us for event, _ in states[1:]), end_us]
        found[place] = [Stood(*each, until_us) for each, until_us in zip(states, untils_us, strict=True)]
    return found


def assignments(history: History) -> dict[Place, tuple[int, ...]]:
    """The replicas of each partition, as its topic's znode had them last. Raises MalformedPayload."""
    found = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED):
        match = _TOPIC.fullmatch(str(event.of("path")))
        if match:
            replicas = read_assignment(match[1], str(event.of("data")).encode()).replicas
            found.update({Place(match[1], partition): brokers for partition, brokers in replicas.items()})
    return found
