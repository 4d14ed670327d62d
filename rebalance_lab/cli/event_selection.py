"""Selecting events of a history: by layer, actor, kind, partition, time, or around one event."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from rebalance_lab.cli.event_lines import id_text
from rebalance_lab.cli.failures import Failure
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.wire.describe import describe

#: The default number of events shown on each side of `--around`.
AROUND = 10

_ID = re.compile(r"(?P<actor>.+?)[#/](?P<n>\d+)")
_AROUND = re.compile(rf"(?P<id>{_ID.pattern})(?::(?P<count>\d+))?")
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)/(?P<partition>\d+)")

#: Details that hold lists of [topic, partition]s.
_PLACES = ("wants", "conflicts")

Place = tuple[str, int]
Word = TypeVar("Word", bound=Enum)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The events to select. Empty or None: no restriction.

    `place`: events that concern the partition: as owner or owned, by path, or in a list of wants or conflicts. Faults
    and the runner's phases are kept, as they concern all partitions. `from_us`, `to_us`: times since the first event,
    both included. `around`: this event, with the `count` selected ones before and after it.
    """

    layers: tuple[Layer, ...] = ()
    actors: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    place: Place | None = None
    from_us: int | None = None
    to_us: int | None = None
    around: EventId | None = None
    count: int = AROUND

    def of(self, events: Sequence[Event]) -> list[Event]:
        """The selected events, in their order. Raises Failure for an actor, an event or a partition that the history
        does not have."""
        self._known(events)
        passes = self._filter(events[0].at_us if events else 0)
        if self.around is None:
            return [event for event in events if passes(event)]
        at = index_of(events, self.around)
        before = [event for event in events[:at] if passes(event)]
        after = [event for event in events[at + 1 :] if passes(event)]
        return [*before[max(len(before) - self.count, 0) :], events[at], *after[: self.count]]

    def _filter(self, origin_us: int) -> Callable[[Event], bool]:
        def passes(event: Event) -> bool:
            since_us = event.at_us - origin_us
            return (
                (not self.layers or event.layer in self.layers)
                and (not self.actors or event.actor in self.actors)
                and (not self.kinds or event.kind in self.kinds)
                and (self.from_us is None or since_us >= self.from_us)
                and (self.to_us is None or since_us <= self.to_us)
                and (self.place is None or concerns(event, self.place))
            )

        return passes

    def _known(self, events: Sequence[Event]) -> None:
        there = list(dict.fromkeys(event.actor for event in events))
        for actor in self.actors:
            if actor not in there:
                raise Failure(f"no actor {actor} recorded an event; there are: {_named(there)}")
        if self.place is not None:
            topic, partition = self.place
            places = {(event.topic, event.partition): None for event in events if event.partition is not None}
            if self.place not in places:
                texts = [f"{each}/{number}" for each, number in places]
                raise Failure(f"no event names partition {topic}/{partition}; there are: {_named(texts) or 'none'}")


def _named(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:20]) + (f" and {len(found) - 20} more" if len(found) > 20 else "")


def concerns(event: Event, place: Place) -> bool:
    """Whether an event is about a partition, or about the trial as a whole."""
    if (event.topic, event.partition) == place or event.layer is Layer.FAULT:
        return True
    if event.kind in {Kind.PHASE, Kind.REST_REACHED, Kind.REST_MISSED}:
        return True
    path = event.of("path")
    if isinstance(path, str) and event.partition is None:
        facts = describe(path, b"")
        return (facts.topic, facts.partition) == place
    for name in _PLACES:
        listed = event.of(name)
        if isinstance(listed, list) and list(place) in listed:
            return True
    return False


def index_of(events: Sequence[Event], event_id: EventId) -> int:
    """The index of an event in a history. Raises Failure that names the existing ids."""
    for index, event in enumerate(events):
        if event.id == event_id:
            return index
    numbers = [event.n for event in events if event.actor == event_id[0]]
    if not numbers:
        actors = _named(dict.fromkeys(event.actor for event in events))
        raise Failure(f"there is no event {id_text(event_id)}: no actor {event_id[0]}; there are: {actors}")
    raise Failure(
        f"there is no event {id_text(event_id)}: {event_id[0]} recorded {event_id[0]}#{min(numbers)} to "
        f"{event_id[0]}#{max(numbers)}"
    )


def event_id_of(text: str, option: str) -> EventId:
    """An id as people type it: `m1#45`, or `m1/45`. Raises Failure."""
    found = _ID.fullmatch(text)
    if found is None:
        raise Failure(f"{option} {text}: write an event's id as ACTOR#N, such as m1#45")
    return (found["actor"], int(found["n"]))


def around_of(text: str) -> tuple[EventId, int]:
    """The event and the number of neighbours of `--around ID[:N]`. Raises Failure."""
    found = _AROUND.fullmatch(text)
    if found is None:
        raise Failure(f"--around {text}: write ACTOR#N or ACTOR#N:COUNT, such as m1#45:20")
    return event_id_of(found["id"], "--around"), AROUND if found["count"] is None else int(found["count"])


def place_of(text: str) -> Place:
    """The partition of `--partition t/0`. Raises Failure."""
    found = _PARTITION.fullmatch(text)
    if found is None:
        raise Failure(f"--partition {text}: write TOPIC/NUMBER, such as t1/0")
    return (found["topic"], int(found["partition"]))


def words_of(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Names separated by commas, from repeated options, or both; in their order, each once."""
    parts = (part.strip() for text in texts or () for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def members_of(option: str, kind: type[Word], texts: Sequence[str] | None) -> tuple[Word, ...]:
    """Members of an enum by their values. Raises Failure that lists them."""
    known = {str(each.value): each for each in kind}
    for word in words_of(texts):
        if word not in known:
            raise Failure(f"{option} {word} does not exist; there are: {', '.join(known)}")
    return tuple(known[word] for word in words_of(texts))
