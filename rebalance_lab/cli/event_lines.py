"""Events as lines, for reading a history in the terminal, with a pager or with grep.

    <mark> <ms since the first event> <id> <layer> <kind> <details> <- <its cause>

An event never takes more than one line: control characters are escaped. Consumer ids, which would
fill half a line, are replaced by their actor in braces: `/consumers/g1/ids/{m1}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from rebalance_lab.history.events import Event, EventId, Kind, Layer
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
