"""One trial as the report sees it: its members, faults and spans, in µs from the trial's start.

Everything here is computed from the history and from Spark's intervals. Nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rebalance_lab.analysis.results import Interval
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.faults import faults as checked_faults
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.fault_kinds import FaultKind, kind_of
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.intervals import PAUSE, RESTART
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.history.views import CLOSING
from rebalance_lab.report.glossary import Words, words_of
from rebalance_lab.report.spans import LAYERS, Gap, Overlap, Row, gaps_of, overlaps_of, row_of, spans_of


@dataclass(frozen=True, slots=True)
class Person:
    """A member: `name` is its actor (`m1`), `member` its consumer id, `index` its place in the legend."""

    name: str
    member: str
    index: int


@dataclass(frozen=True, slots=True)
class Fault:
    """An injected fault, or a change that breaks nothing. `ended_us` is None if it takes no time (a kill, a leave).

    `peer`: the other end of the link that it is on; None if it is on none.
    `closed_us`: when the registry closed the victim's session during the fault; None if it did not. `proof`: the
    proof that the fault took effect. `doubt`: why the checks do not count it; None if they do.
    """

    kind: FaultKind
    target: str
    member: str | None
    peer: str | None
    began_us: int
    ended_us: int | None
    closed_us: int | None
    must_outlast_session: bool
    proof: str | None
    doubt: str | None
    event: EventId

    @property
    def suffers(self) -> str:
        """What its target suffers, in words."""
        return self.kind.suffers_from(self.peer)

    @property
    def where(self) -> str:
        """Its target: a node, or a link as `b1–b2`."""
        return self.target if self.peer is None else f"{self.target}–{self.peer}"


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """A session that the registry closed. `name` is its member's. `znodes`: the deletions of members'
    znodes that came with it."""

    name: str
    session: str
    at_us: int
    event: EventId
    znodes: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """A trial, ready to be described and drawn. All times are µs from its first event.

    `working_us`: when the first place was due to have a holder (`Words.due_from`). `closing_us`: the begin of
    the members' clean leave, or the end. Before and after, a partition without an owner is normal. `names`: short names
    by consumer id; `session_names`: by session.
    """

    trial: Trial
    events: tuple[Event, ...]
    origin_us: int
    end_us: int
    working_us: int
    closing_us: int
    people: tuple[Person, ...]
    names: Mapping[str, str]
    session_names: Mapping[str, str]
    faults: tuple[Fault, ...]
    session_ends: tuple[SessionEnd, ...]
    rows: tuple[Row, ...]
    spans: tuple[Span, ...]
    owners: Mapping[Row, tuple[Span, ...]]
    overlaps: tuple[Overlap, ...]
    gaps: tuple[Gap, ...]

    @property
    def words(self) -> Words:
        """The words of the trial's subject."""
        return words_of(self.trial.subject)

    def since_start(self, event: Event) -> int:
        return event.at_us - self.origin_us

    def name(self, member: str | None) -> str:
        """The member's short name; its id if the history does not introduce it."""
        return "nobody" if member is None else self.names.get(member, member)

    def owner(self, row: Row, at_us: int, besides: str | None = None) -> str | None:
        """The name of the owner of a row in the registry at a moment, other than the member `besides`."""
        spans = self.owners.get(row, ())
        found = (each for each in spans if each.begin_us <= at_us <= each.end_us and each.member != besides)
        return next((self.name(each.member) for each in found), None)

    def plainly(self, text: str) -> str:
        """The text with short names in place of consumer ids."""
        for person in sorted(self.people, key=lambda each: -len(each.member)):
            text = text.replace(person.member, person.name)
        return text

    @property
    def harms(self) -> tuple[Fault, ...]:
        """The faults that break something."""
        return tuple(fault for fault in self.faults if not fault.kind.change)

    def back_us(self, killed: Fault) -> int:
        """When the process of a node that was killed is started again; the end of the trial if it is not."""
        return next(
            (
                fault.began_us
                for fault in self.faults
                if fault.kind.name == RESTART and fault.target == killed.target and fault.began_us >= killed.began_us
            ),
            self.end_us,
        )

    def rebalances(self) -> Iterator[tuple[Event, Event]]:
        """Begin and end of each rebalance that has both."""
        began: dict[str, Event] = {}
        for event in self.events:
            if event.kind is Kind.REBALANCE_BEGAN:
                began[event.actor] = event
            elif event.kind is Kind.REBALANCE_ENDED and event.actor in began:
                yield began.pop(event.actor), event

    def longest(self, layer: Layer) -> Overlap | None:
        """The longest overlap of a layer; the earliest if several are equally long."""
        found = [each for each in self.overlaps if each.layer is layer]
        return max(found, key=lambda each: (each.length_us, -each.begin_us), default=None)


def build_scene(history: History, intervals: Iterable[Interval]) -> Scene:
    """The scene of a trial. Raises ValueError for a history without events."""
    events = history.events
    if not events:
        raise ValueError(f"trial {history.trial.id} has no events: nothing can be shown; run it again")
    origin_us = min(event.at_us for event in events)
    end_us = max(event.at_us for event in events) - origin_us
    closing = [event.at_us - origin_us for event in events if event.kind is Kind.PHASE and event.of("name") == CLOSING]
    spans = spans_of(history.trial.id, intervals, origin_us)
    rows = tuple(sorted({row_of(span) for span in spans}))
    words = words_of(history.trial.subject)
    lanes = [(row, layer) for row in rows for layer in LAYERS if words.have[layer].none]
    due_us = min((event.at_us - origin_us for event in events if event.kind is words.due_from), default=0)
    begins_us = _first_held(spans, lanes) if words.due_from is None else dict.fromkeys(lanes, due_us)
    working_us = min(begins_us.values(), default=due_us)
    closing_us = min(closing, default=end_us)
    people = _people(events, spans)
    session_names = _session_names(events, people)
    return Scene(
        trial=history.trial,
        events=events,
        origin_us=origin_us,
        end_us=end_us,
        working_us=working_us,
        closing_us=closing_us,
        people=people,
        names={each.member: each.name for each in people},
        session_names=session_names,
        faults=_faults(history, origin_us, end_us),
        session_ends=_session_ends(events, origin_us, session_names),
        rows=rows,
        spans=spans,
        owners=_owners(spans),
        overlaps=overlaps_of(spans),
        gaps=gaps_of(spans, begins_us, closing_us),
    )


def _first_held(spans: tuple[Span, ...], lanes: Iterable[tuple[Row, Layer]]) -> dict[tuple[Row, Layer], int]:
    """When each of these lanes first gave its row to anybody; without those that never did."""
    found: dict[tuple[Row, Layer], int] = {}
    for span in spans:
        lane = row_of(span), span.layer
        found[lane] = min(span.begin_us, found.get(lane, span.begin_us))
    return {lane: found[lane] for lane in lanes if lane in found}


def _owners(spans: tuple[Span, ...]) -> dict[Row, tuple[Span, ...]]:
    owners: dict[Row, list[Span]] = {}
    for span in spans:
        if span.layer is Layer.REGISTRY:
            owners.setdefault(row_of(span), []).append(span)
    return {row: tuple(found) for row, found in owners.items()}


def _people(events: tuple[Event, ...], spans: tuple[Span, ...]) -> tuple[Person, ...]:
    names: dict[str, str] = {}
    for event in events:
        believes = event.layer is Layer.BELIEF and event.member == event.actor  # as brokers do
        if event.member is not None and (event.kind is Kind.MEMBER_STARTED or believes):
            names.setdefault(event.member, event.actor)
    for span in spans:
        names.setdefault(span.member, span.member)  # one that only the registry knows
    ordered = sorted(names.items(), key=lambda item: (len(item[1]), item[1], item[0]))
    return tuple(Person(name, member, index) for index, (member, name) in enumerate(ordered))


def _faults(history: History, origin_us: int, end_us: int) -> tuple[Fault, ...]:
    closes = [(event.session, event.at_us - origin_us) for event in history.events if event.kind is Kind.SESSION_CLOSED]
    faults = []
    for fault in checked_faults(history):
        began = fault.began
        began_us = began.at_us - origin_us
        ended_us = None
        kind = kind_of(began)
        if fault.ended is not None and kind.ends:
            ended_us = fault.ended.at_us - origin_us
        elif kind.name == PAUSE:  # one that nobody ended lasts
            ended_us = end_us
        last_us = end_us if ended_us is None else ended_us
        during = range(began_us - TOLERANCE_US, last_us + TOLERANCE_US + 1)
        faults.append(
            Fault(
                kind=kind,
                target=str(began.of("target")),
                member=began.member,
                peer=None if began.of("peer") is None else str(began.of("peer")),
                began_us=began_us,
                ended_us=ended_us,
                closed_us=next((at for session, at in closes if session == began.of("session") and at in during), None),
                must_outlast_session=fault.must_outlast_session,
                proof=None if fault.bit is None else str(fault.bit.of("proof")),
                doubt=fault.why_not_bitten,
                event=began.id,
            )
        )
    return tuple(faults)


def _session_names(events: tuple[Event, ...], people: tuple[Person, ...]) -> dict[str, str]:
    """The member of each session: the one that reported it, else the one that was registered in it."""
    by_member = {person.member: person.name for person in people}
    names: dict[str, str] = {}
    for event in events:
        if event.kind is Kind.CONNECTED and event.session is not None:
            names.setdefault(event.session, event.actor)
        elif event.kind is Kind.CREATED and event.session is not None and event.member in by_member:
            names.setdefault(event.session, by_member[event.member])
    return names


def _session_ends(events: tuple[Event, ...], origin_us: int, names: Mapping[str, str]) -> tuple[SessionEnd, ...]:
    gone: dict[tuple[str | None, int | None], list[Event]] = {}
    for event in events:
        if event.kind is Kind.DELETED and event.of("with_session"):
            gone.setdefault((event.session, event.zxid), []).append(event)
    ends = []
    for event in events:
        if event.kind is Kind.SESSION_CLOSED and event.session is not None and event.session in names:
            znodes = gone.get((event.session, event.zxid), [])
            ends.append(
                SessionEnd(
                    name=names[event.session],
                    session=event.session,
                    at_us=event.at_us - origin_us,
                    event=event.id,
                    znodes=tuple(each for each in znodes if each.member is not None),
                )
            )
    return tuple(ends)
