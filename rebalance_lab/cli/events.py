"""Events on the terminal: selecting them from a history, and writing them as lines, for a pager or grep.

    <mark> <ms since the first event> <id> <layer> <kind> <details> <- <its cause>

An event never takes more than one line: control characters are escaped. Consumer ids, which would fill half a line, are
replaced by their actor in braces: `/consumers/g1/ids/{m1}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import msgspec

from rebalance_lab.cli.failures import Failure
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.trials.names import missing, some_of
from rebalance_lab.wire.describe import describe
from rebalance_lab.world.errors import BY_CODE

#: Marks in front of a line, so that it can be found without colours.
FAULT_MARK, RUNNER_MARK, CHOSEN_MARK, NO_MARK = "!!", "==", ">>", "  "

#: Events of the runner about the trial as a whole.
MILESTONES = frozenset({Kind.TRIAL_BEGAN, Kind.PHASE, Kind.REST_REACHED, Kind.REST_MISSED, Kind.TRIAL_ENDED})

#: Details that the line shows elsewhere, or that only programs need.
_LEFT_OUT = frozenset(
    {
        *("of", "cxid", "thread", "data", "what", "must_outlast_session", "ephemeral", "with_session", "sampled"),
        *("code", "parts", "sessions", "owners_zxid"),
    }
)

#: Details that are shown without their names, in this order; the others follow as name=value.
_BARE = (
    *("scenario", "name", "op", "fault", "target", "event", "path", "message"),
    *("outcome", "phase", "error", "why", "proof"),
)

#: Events of a session itself. They show its id.
_SESSION_KINDS = frozenset({Kind.SESSION_OPENED, Kind.SESSION_CLOSED, Kind.CONNECTED, Kind.DISCONNECTED, Kind.EXPIRED})

#: Longer ids and kinds are rare; they shift the rest of their line to the right.
_ID_WIDTH, _KIND_WIDTH = 15, 15

#: Longer lists are cut; `--json` shows them whole.
_LISTED_LIMIT = 8

Shorten = Callable[[str], str]


def id_text(event_id: EventId) -> str:
    """`m1#45`: an id as people read and type it."""
    return f"{event_id[0]}#{event_id[1]}"


def shortener(events: Iterable[Event]) -> Shorten:
    """A function that replaces each consumer id of a history by `{actor}`. An id that actors share, as duplicates do,
    stays."""
    actors: dict[str, list[str]] = {}
    for event in events:
        if event.kind is Kind.MEMBER_STARTED and event.member:
            known = actors.setdefault(event.member, [])
            if event.actor not in known:
                known.append(event.actor)
    names = {member: who[0] for member, who in actors.items() if len(who) == 1}
    if not names:
        return str
    longest_first = sorted(names, key=lambda each: (-len(each), each))
    pattern = re.compile("|".join(re.escape(each) for each in longest_first))
    return lambda text: pattern.sub(lambda found: f"{{{names[found[0]]}}}", text)


@dataclass(frozen=True, slots=True)
class Lines:
    """How the events of one history are written. `origin_us`: the time of the first event."""

    origin_us: int
    shorten: Shorten
    time_width: int
    id_width: int
    kind_width: int

    @classmethod
    def of(cls, history: Sequence[Event], shown: Sequence[Event]) -> Lines:
        """For `history`, with columns that fit `shown` (some events, in any order)."""
        origin_us = history[0].at_us if history else 0
        last_us = max((event.at_us for event in shown), default=origin_us)
        return cls(
            origin_us,
            shortener(history),
            time_width=len(_ms(last_us - origin_us)),
            id_width=min(_ID_WIDTH, max((len(id_text(event.id)) for event in shown), default=0)),
            kind_width=min(_KIND_WIDTH, max((len(event.kind) for event in shown), default=0)),
        )

    def line(self, event: Event, chosen: EventId | None = None) -> str:
        """The event's line, without a line feed. `chosen`: the id of the event to be marked."""
        mark = CHOSEN_MARK if event.id == chosen else mark_of(event)
        time = _ms(event.at_us - self.origin_us).rjust(self.time_width)
        event_id = id_text(event.id).ljust(self.id_width)
        layer, kind = event.layer.ljust(len(Layer.REGISTRY)), event.kind.ljust(self.kind_width)
        cause = f"<- {id_text(event.cause)}" if event.cause is not None else ""
        line = " ".join(filter(None, (mark, time, event_id, layer, kind, self.words(event), cause)))
        return printable(line).rstrip()

    def words(self, event: Event) -> str:
        """The details in one line: place, details, member, session, zxid."""
        registry = event.layer is Layer.REGISTRY
        parts = _details(event.detail or {})
        path = event.of("path")
        if event.partition is not None and not (isinstance(path, str) and path.endswith(f"/{_where(event)}")):
            parts.insert(0, _where(event))
        if event.kind in _SESSION_KINDS and event.session is not None:
            parts.append(event.session)
        text = self.shorten(" ".join(parts))
        member = self.shorten(event.member or "")
        if member not in ("", f"{{{event.actor}}}") and member not in text and event.layer is not Layer.FAULT:
            text = f"{text} of {member}"
            if event.of("ephemeral") is False:
                text += ", persistent"
        if registry and event.zxid is not None:
            text += f" zxid {event.zxid:#x}"
        return text.strip()


def mark_of(event: Event) -> str:
    """The mark in front of an event's line, for faults and milestones."""
    if event.layer is Layer.FAULT:
        return FAULT_MARK
    return RUNNER_MARK if event.kind in MILESTONES else NO_MARK


def printable(text: str) -> str:
    """The text with control characters as escapes, so that it stays one line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _ms(duration_us: int) -> str:
    return f"{duration_us / 1000:.3f}"


def _where(event: Event) -> str:
    return f"{event.topic}/{event.partition}"


def _details(detail: dict[str, object]) -> list[str]:
    said = [_value(detail[name]) for name in _BARE if detail.get(name, "") != ""]
    parts = detail.get("parts")
    if isinstance(parts, list):
        said += _parts(parts)
    if detail.get("with_session"):
        said.append("with session")
    if detail.get("sampled"):
        said.append("sampled")
    code = detail.get("code")
    if isinstance(code, int) and code in BY_CODE:
        said.append(BY_CODE[code].__name__)
    hidden = _LEFT_OUT | ({"children"} if "owners" in detail else set())
    rest = (name for name in detail if name not in hidden and name not in _BARE)
    return said + [f"{name}={_value(detail[name])}" for name in rest]


def _parts(parts: Sequence[Sequence[str]]) -> list[str]:
    """The operations of a multi or multi-read. Those on one folder are joined: `get /ids/a,b`."""
    together: dict[tuple[str, str], list[str]] = {}
    for operation, path in parts:
        folder, _, name = path.rpartition("/")
        together.setdefault((operation, folder), []).append(name)
    return [f"{operation} {folder}/{_listed(names)}" for (operation, folder), names in together.items()]


def _value(value: object) -> str:
    """A detail as text: a,b for lists, t/0,t/1 for lists of [topic, partition], k:v for maps."""
    match value:
        case str():
            return value
        case [str(topic), int(partition)]:
            return f"{topic}/{partition}"
        case list():
            return _listed([_value(each) for each in value])
        case dict():
            return _listed([f"{name}:{_value(each)}" for name, each in value.items()])
        case _:
            return msgspec.json.encode(value).decode()


def _listed(texts: Sequence[str]) -> str:
    if len(texts) > _LISTED_LIMIT:
        return ",".join(texts[:_LISTED_LIMIT]) + f",… ({len(texts)})"
    return ",".join(texts) or "none"


# -- selecting ------------------------------------------------------------------------------------


#: The default number of events shown on each side of `--around`.
AROUND = 10

_ID = re.compile(r"(?P<actor>.+?)[#/](?P<n>[0-9]{1,18})")
_AROUND = re.compile(rf"(?P<id>{_ID.pattern})(?::(?P<count>[0-9]{{1,18}}))?")
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)/(?P<partition>[0-9]{1,18})")

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
                raise Failure(f"no actor {actor} recorded an event; there are: {some_of(sorted(there))}")
        if self.place is not None:
            topic, partition = self.place
            places = {(event.topic, event.partition): None for event in events if event.partition is not None}
            if self.place not in places:
                texts = [f"{each}/{number}" for each, number in places]
                raise Failure(f"no event names partition {topic}/{partition}; there are: {some_of(sorted(texts))}")


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
        actors = some_of(sorted({event.actor for event in events}))
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


def words_of(option: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Names separated by commas, from repeated options, or both; in their order, each once. Raises Failure for an
    option without any."""
    parts = (part.strip() for text in texts or () for part in text.split(","))
    found = tuple(dict.fromkeys(part for part in parts if part))
    if texts and not found:
        raise Failure(f"{option} is empty; name what to show, or leave it out")
    return found


def members_of(option: str, members: Iterable[Word], texts: Sequence[str] | None) -> tuple[Word, ...]:
    """Members of an enum by their values. Raises Failure that suggests the nearest, or lists them."""
    known = {str(each.value): each for each in members}
    words = words_of(option, texts)
    for word in words:
        if word not in known:
            raise Failure(missing(f"{option} {word} does not exist", word, known))
    return tuple(known[word] for word in words)
