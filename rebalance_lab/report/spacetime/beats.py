"""From events to beats: what is worth a mark in a space-time diagram, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.views import CLOSING
from rebalance_lab.report.glossary import last_of
from rebalance_lab.report.narrator import Mark, narrator_of
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import ROWS, exact_moment, listed, partition_ranges, partitions_named

#: Events of one actor that say the same are one mark while they follow each other this closely (µs),
RUN_GAP_US = 60_000
#: and all of them within this.
RUN_US = 200_000
#: The lane of all who have none of their own.
CROWD = "others"
#: Letters of partition numbers in a label; of more, only how many they are.
NUMBERS = 11
#: Events of this weight or more are shown only where they are witnesses.
UNWANTED = 8


@dataclass(frozen=True, slots=True)
class Beat:
    """One mark. `verb` and `subject` say what beats alike share; `rows` are what it is about.

    `shape`, `weight`: as of a `Mark`.
    """

    actor: str
    at_us: int
    last_us: int
    shape: str
    verb: str
    subject: str
    rows: tuple[Row, ...]
    weight: int
    events: tuple[Event, ...]
    witness: bool

    @property
    def ids(self) -> tuple[EventId, ...]:
        return tuple(event.id for event in self.events)


_SESSION_VERBS = {Kind.SESSION_OPENED: ("session opens:", 2), Kind.SESSION_CLOSED: ("session ends:", 1)}


def beat_of(scene: Scene, event: Event, witness: bool, crowd: Collection[str] = ()) -> Beat | None:
    """The beat of one event, None for what no diagram shows. `crowd`: members without a lane."""
    mark = _mark(scene, event, crowd)
    if not witness and (mark is None or mark.weight >= UNWANTED):
        return None
    mark = mark or Mark("life", event.kind.value.replace("-", " "), 0)
    at_us = scene.since_start(event)
    rows = mark.rows
    if rows is None:
        rows = () if event.partition is None else (row_of(event),)
    weight = 0 if witness else mark.weight
    return Beat(event.actor, at_us, at_us, mark.shape, mark.verb, mark.subject, rows, weight, (event,), witness)


def _mark(scene: Scene, event: Event, crowd: Collection[str]) -> Mark | None:
    """By the subject's words, else by its narrator, else as for any subject."""
    fixed = scene.words.mark(event)
    if fixed is not None:
        return Mark(*fixed, rows=() if scene.words.of(event.kind).is_templated else None)
    match event.kind:
        case Kind.SESSION_OPENED | Kind.SESSION_CLOSED | Kind.CREATED | Kind.DELETED | Kind.CHANGED:
            return _registry_mark(scene, event, crowd)
        case Kind.WATCH_FIRED | Kind.OBSERVED:
            return _seen_mark(scene, event)
        case Kind.FAULT_BEGAN | Kind.FAULT_ENDED:
            return _fault_mark(event)
        case Kind.PHASE:
            closing = event.of("name") == CLOSING
            verb, name = ("all leave", "") if closing else ("phase:", str(event.of("name")))
            return Mark("life", verb, UNWANTED, name)
        case _:
            return narrator_of(scene.trial.subject).mark(scene, event)


def _registry_mark(scene: Scene, event: Event, crowd: Collection[str]) -> Mark | None:
    if event.kind in _SESSION_VERBS:
        session = scene.session_names.get(event.session or "", "")
        return Mark("session", *_SESSION_VERBS[event.kind], _or_crowd(session, crowd)) if session else None
    path = str(event.of("path") or "")
    name = _or_crowd(scene.name(event.member), crowd)
    words = scene.words.znode(path)
    about = {"node": name, "last": last_of(path), "": ""}[words.about]
    return Mark("registry", words.verb(event.kind, name), words.weight, about)


def _seen_mark(scene: Scene, event: Event) -> Mark:
    path = str(event.of("path") or "")
    if event.kind is Kind.OBSERVED:
        return Mark("life", "observes", UNWANTED, last_of(path))
    return Mark("watch", "watch:", 3, scene.words.znode(path).watch(path))


def _fault_mark(event: Event) -> Mark | None:
    words, target = kind_of(event), str(event.of("target"))
    began = event.kind is Kind.FAULT_BEGAN
    if words.change:
        return Mark("change", f"{target} {words.band}", 0) if began else None
    verb = words.begins if began else words.ends
    return Mark("fault", verb, 0, target) if verb else None


def _or_crowd(name: str, crowd: Collection[str]) -> str:
    return CROWD if name in crowd else name


def fold_sessions(beats: Sequence[Beat]) -> list[Beat]:
    """The znodes that vanish with a session are one with its end."""
    ends = {
        (beat.events[0].session, beat.events[0].zxid): place
        for place, beat in enumerate(beats)
        if beat.events[0].kind is Kind.SESSION_CLOSED
    }
    folded: dict[int, list[Event]] = {}
    kept: list[Beat | None] = list(beats)
    for place, beat in enumerate(beats):
        event = beat.events[0]
        end = ends.get((event.session, event.zxid)) if event.of("with_session") else None
        if end is not None:
            folded.setdefault(end, []).append(event)
            kept[place] = None
    for end, events in folded.items():
        kept[end] = replace(beats[end], events=(*beats[end].events, *events))
    return [beat for beat in kept if beat is not None]


def runs(beats: Sequence[Beat]) -> list[Beat]:
    """Beats of one actor that say the same, closely after each other, drawn together."""
    found: list[Beat] = []
    last: dict[tuple[str, str, str, str], int] = {}
    for beat in sorted(beats, key=lambda each: each.at_us):  # stable: as the history has them
        key = (beat.actor, beat.shape, beat.verb, beat.subject)
        place = last.get(key)
        before = None if place is None else found[place]
        if place is not None and before is not None and _joins(before, beat):
            found[place] = replace(
                before,
                last_us=beat.last_us,
                rows=(*before.rows, *beat.rows),
                weight=min(before.weight, beat.weight),
                events=(*before.events, *beat.events),
                witness=before.witness or beat.witness,
            )
        else:
            last[key] = len(found)
            found.append(beat)
    return found


def _joins(before: Beat, beat: Beat) -> bool:
    close = beat.at_us - before.last_us <= RUN_GAP_US and beat.at_us - before.at_us <= RUN_US
    # Partitions run together; of other things each happening counts, unless it is the crowd's.
    return close and bool(beat.rows or CROWD in {before.actor, before.subject})


def label(beat: Beat, letters: int) -> str:
    """A beat in at most so many letters."""
    words = [beat.verb]
    if beat.actor == CROWD:
        words.insert(0, f"{len({event.actor for event in beat.events})} ×")
    if beat.subject:
        words.append(beat.subject)
    rows = _rows(beat)
    text = " ".join(words)
    text = text.replace(ROWS, rows) if ROWS in text else f"{text} {rows}".strip()
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _rows(beat: Beat) -> str:
    """Which partitions a label names: their numbers, or only how many they are."""
    if beat.actor == CROWD or not beat.rows:
        return ""
    numbers = partition_ranges(row.partition for row in beat.rows)
    plain = len({row.topic for row in beat.rows}) == 1 and len(numbers) <= NUMBERS
    return numbers if plain else f"{len(set(beat.rows))} partitions"


def title(scene: Scene, beat: Beat) -> str:
    """A beat's tooltip: the whole story of its events."""
    when = exact_moment(beat.at_us) + (f" to {exact_moment(beat.last_us)}" if beat.last_us > beat.at_us else "")
    if len(beat.events) == 1:
        event = beat.events[0]
        told = scene.words.deed(event, _name(scene, event))
        return f"{when} s, {event.actor}: {told} (event {event.n}). {scene.words.alone(event)}"
    actors = sorted({event.actor for event in beat.events}, key=lambda name: (len(name), name))
    first = scene.words.deed(beat.events[0], _name(scene, beat.events[0]))
    rows = partitions_named(set(beat.rows))
    about = f": {beat.verb.replace(ROWS, rows) if ROWS in beat.verb else f'{beat.verb} {rows}'}"
    about = about if beat.rows else f": {first}"
    gone = "" if beat.shape != "session" else f"; {len(beat.events) - 1} znodes vanish with it"
    return f"{when} s, {listed(actors)}{about}{gone} ({len(beat.events)} events)"


def _name(scene: Scene, event: Event) -> str:
    if event.member is not None:
        return scene.name(event.member)
    return scene.session_names.get(event.session or "", "")
