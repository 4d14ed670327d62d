"""The state znodes of partitions, and their assignments, as the registry's events hold them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rebalance_lab.checks.periods import Period, periods
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, grouped, once
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_assignment, read_state
from rebalance_lab.wire.paths import DELETE_TOPICS, partition_of_state


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


_TOPIC = re.compile(r"/brokers/topics/([^/]+)")


def place_of(event: Event) -> Place:
    """The partition that an event is about; -1 if it is about none."""
    return Place(str(event.topic), -1 if event.partition is None else event.partition)


def place_of_state(event: Event) -> Place | None:
    """The partition whose state znode an event of the registry is about; None if it is about another znode."""
    named = partition_of_state(str(event.of("path")))
    return None if named is None else Place(*named)


def partition_states(history: History) -> dict[Place, list[tuple[Event, LeaderIsrAndControllerEpoch]]]:
    """The states that stood in each partition's state znode, in their order. Raises KafkaException."""
    found: dict[Place, list[tuple[Event, LeaderIsrAndControllerEpoch]]] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED):
        place = place_of_state(event)
        if place is not None:
            state = read_state(*place, str(event.of("data")).encode())
            found.setdefault(place, []).append((event, state))
    return found


@once
def creations(history: History) -> dict[str | None, list[Event]]:
    """Of each topic's znode, in their order."""
    return grouped((each for each in events_of(history, Kind.CREATED) if _topic_of(each)), _topic_of)


class Lived(NamedTuple):
    """A partition in one life of its topic. `life`: how many times the topic had been created."""

    place: Place
    life: int


def lived(history: History, place: Place, at_us: int) -> Lived:
    """A partition in the life of its topic at a time."""
    births = creations(history).get(place.topic, ())
    return Lived(place, bisect_right(births, at_us, key=lambda each: each.at_us))


def lived_of(history: History, event: Event) -> Lived:
    """The partition that an event is about, in the life of its topic at that time."""
    return lived(history, place_of(event), event.at_us)


def lives(history: History) -> list[tuple[Place, list[tuple[Event, LeaderIsrAndControllerEpoch]]]]:
    """The states of each partition, apart for each life of its topic: one that is deleted and created anew is another
    topic of the same name, and its leader epochs begin anew. Raises KafkaException."""
    found = []
    for place, states in partition_states(history).items():
        zxids = [each.zxid or 0 for each in creations(history).get(place.topic, ())]
        by_life = grouped(states, partial(_life, zxids))
        found += [(place, its) for its in by_life.values()]
    return found


def _life(births: Sequence[int], state: tuple[Event, LeaderIsrAndControllerEpoch]) -> int:
    """The number of a topic's life to which a state belongs. `births`: the zxids of the topic's creations."""
    return bisect_right(births, state[0].zxid or 0)


def _topic_of(event: Event) -> str | None:
    """The topic whose znode an event of the registry is about; None if it is about another znode."""
    match = _TOPIC.fullmatch(str(event.of("path")))
    return match and match[1]


def stood(history: History, end_us: int) -> dict[Place, list[Stood]]:
    """The states of each partition with the times for which they stood; the last one until `end_us`, unless its znode
    is deleted first. Raises KafkaException for a malformed znode."""
    found: dict[Place, list[Stood]] = {}
    for place, states in partition_states(history).items():
        deletions = [each.at_us for each in events_of(history, Kind.DELETED) if place_of_state(each) == place]
        untils_us = [*(event.at_us for event, _ in states[1:]), end_us]
        for (event, state), until_us in zip(states, untils_us, strict=True):
            gone_us = [each for each in deletions if event.at_us <= each < until_us]
            found.setdefault(place, []).append(Stood(event, state, min([*gone_us, until_us])))
    return found


@once
def topic_writes(history: History) -> dict[str | None, list[Event]]:
    """The writes of each topic's znode, and its deletions, in their order."""
    return grouped(
        (each for each in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED) if _topic_of(each)), _topic_of
    )


@once
def deletion_requests(history: History) -> dict[str, list[Period]]:
    """When each topic was to be deleted: while it was listed in `/admin/delete_topics`."""
    found = _deletion_events(history).items()
    return {topic: periods((each, each.kind is Kind.CREATED) for each in its) for topic, its in found}


@once
def _deletion_events(history: History) -> dict[str, list[Event]]:
    """When each topic was asked to be deleted, and when the request went."""
    found: dict[str, list[Event]] = {}
    for event in events_of(history, Kind.CREATED, Kind.DELETED):
        folder, _, topic = str(event.of("path")).rpartition("/")
        if folder == DELETE_TOPICS:
            found.setdefault(topic, []).append(event)
    return found


def asked_to_delete(history: History, topic: str, moment: Event) -> Event | None:
    """The request to delete a topic that stands at a moment."""
    its = [each for each in _deletion_events(history).get(topic, ()) if each.at_us <= moment.at_us]
    return its[-1] if its and its[-1].kind is Kind.CREATED else None


@once
def assigned(history: History) -> dict[Place, list[tuple[Event, tuple[int, ...]]]]:
    """The replicas of each partition, at each write of its topic's znode. Raises KafkaException."""
    found: dict[Place, list[tuple[Event, tuple[int, ...]]]] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED):
        topic = _topic_of(event)
        if topic is not None:
            replicas = read_assignment(topic, str(event.of("data")).encode()).replicas
            for partition, brokers in replicas.items():
                found.setdefault(Place(topic, partition), []).append((event, brokers))
    return found


def assignments(history: History) -> dict[Place, tuple[int, ...]]:
    """The replicas of each partition, as its topic's znode had them last. Raises KafkaException."""
    return {place: writes[-1][1] for place, writes in assigned(history).items()}


def replicas_at(history: History, place: Place, event: Event) -> tuple[int, ...]:
    """The replicas of a partition as its topic's znode had them at an event; none if it is unknown. While it is
    reassigned they are its new and its old ones. Raises KafkaException."""
    before = [brokers for write, brokers in assigned(history).get(place, ()) if _is_before(write, event)]
    return before[-1] if before else ()


def _is_before(write: Event, event: Event) -> bool:
    if write.zxid is not None and event.zxid is not None:
        return write.zxid <= event.zxid
    return write.at_us <= event.at_us
