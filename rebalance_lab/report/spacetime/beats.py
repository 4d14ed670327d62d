"""From events to beats: what is worth a mark in a space-time diagram, and in which words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.views import CLOSING
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import count, exact_moment, listed, partition_ranges, partitions_named

#: Events of one actor that say the same are one mark while they follow each other this closely (µs),
RUN_GAP_US = 60_000
#: and all of them within this.
RUN_US = 200_000
#: The lane of all who have none of their own.
CROWD = "others"
#: Letters of partition numbers in a label; of more, only how many they are.
NUMBERS = 11
#: Stands in a verb where its partitions go; they follow it otherwise.
ROWS = "{}"
#: How a member's warning begins that says that there are more members than partitions.
IDLE = "No broker partitions consumed"
#: Events of this weight or more are shown only where they are witnesses.
UNWANTED = 8


@dataclass(frozen=True, slots=True)
class Beat:
    """One mark. `verb` and `subject` say what beats alike share; `rows` are what it is about.

    `shape`: fault | change | session | life | belief | registry | watch | rebalance | failure | decision | work.
    `weight`: the less, the more it matters. `members`: whom it is about.
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


@dataclass(frozen=True, slots=True)
class _Word:
    shape: str
    verb: str
    weight: int
    subject: str = ""


_DEEDS = {Kind.CREATED: "created", Kind.DELETED: "deleted"}
_SESSION_VERBS = {Kind.SESSION_OPENED: ("session opens:", 2), Kind.SESSION_CLOSED: ("session ends:", 1)}


def beat_of(scene: Scene, event: Event, witness: bool, crowd: Collection[str] = ()) -> Beat | None:
    """The beat of one event, None for what no diagram shows. `crowd`: members without a lane."""
    mark = scene.words.mark(event)
    word = _word(scene, event, crowd) if mark is None else _Word(*mark)
    if word is None or (word.weight >= UNWANTED and not witness):
        if not witness:
            return None
        word = word or _Word("life", event.kind.value.replace("-", " "), 0)
    at_us = scene.since_start(event)
    rows = () if scene.words.of(event.kind).is_templated else _rows_of(event)
    weight = 0 if witness else word.weight
    return Beat(event.actor, at_us, at_us, word.shape, word.verb, word.subject, rows, weight, (event,), witness)


def _rows_of(event: Event) -> tuple[Row, ...]:
    """What an event is about; of a claim that was refused only the path says so."""
    if event.partition is not None:
        return (row_of(event),)
    if event.kind is Kind.FAILED_OP and _is_claim(event):
        _, _, group, _, topic, number = str(event.of("path")).split("/")
        return (Row(group, topic, int(number)),)
    return ()


def _word(scene: Scene, event: Event, crowd: Collection[str]) -> _Word | None:
    match event.kind:
        case Kind.SESSION_OPENED | Kind.SESSION_CLOSED | Kind.CREATED | Kind.DELETED | Kind.CHANGED:
            return _registry_word(scene, event, crowd)
        case Kind.FAULT_BEGAN | Kind.FAULT_ENDED:
            return _fault_word(event)
        case Kind.FAILED_OP if _is_claim(event):
            return _refusal(scene, event)
        case Kind.WARNED:
            idle = str(event.of("message")).startswith(IDLE)
            return _Word("life", "gets nothing", 4) if idle else _Word("failure", "warns", 5)
        case Kind.OBSERVED:
            return _Word("life", "observes", UNWANTED, str(event.of("path") or "").rsplit("/", 1)[-1])
        case _:
            return _attempt_word(event)


def _refusal(scene: Scene, event: Event) -> _Word:
    """Of a claim that met another's znode, and whose."""
    holders = [scene.owner(row, scene.since_start(event), event.member) for row in _rows_of(event)]
    holder = next((each for each in holders if each), None)
    return _Word("failure", f"refused {ROWS}" + (":" if holder else ""), 1, f"{holder}’s" if holder else "")


def _attempt_word(event: Event) -> _Word | None:
    """Of watches and of a rebalance's steps."""
    number, word = event.of("attempt"), None
    match event.kind:
        case Kind.WATCH_FIRED:
            word = _Word("watch", "watch:", 3, _watched(str(event.of("path") or "")))
        case Kind.REBALANCE_ENDED:
            good = event.of("outcome") == "ok"
            word = _Word("rebalance", "done", 4) if good else _Word("failure", "gives up", 1, "for good")
        case Kind.ATTEMPT_BEGAN if isinstance(number, int) and number:
            word = _Word("rebalance", "attempt", 4, str(number + 1))
        case Kind.ATTEMPT_FAILED:
            word = _Word("failure", "attempt fails:", 1, str(event.of("reason") or "error"))
        case Kind.DECIDED:
            seen = event.of("members")
            word = _Word("decision", "sees", 3, count(seen, "member") if isinstance(seen, int) else "members")
        case Kind.PHASE:
            closing = event.of("name") == CLOSING
            word = _Word(
                "life", "all leave" if closing else "phase:", UNWANTED, "" if closing else str(event.of("name"))
            )
    return word


def _fault_word(event: Event) -> _Word | None:
    words, target = kind_of(event), str(event.of("target"))
    began = event.kind is Kind.FAULT_BEGAN
    if words.change:
        return _Word("change", f"{target} {words.band}", 0) if began else None
    verb = words.begins if began else words.ends
    return _Word("fault", verb, 0, target) if verb else None


def _is_claim(event: Event) -> bool:
    """/consumers/GROUP/owners/TOPIC/PARTITION"""
    parts = str(event.of("path") or "").split("/")
    return event.of("op") == "create" and len(parts) == 6 and parts[3] == "owners" and parts[5].isdigit()


def _registry_word(scene: Scene, event: Event, crowd: Collection[str]) -> _Word | None:
    session = scene.session_names.get(event.session or "", "")
    if event.kind in _SESSION_VERBS:
        return _Word("session", *_SESSION_VERBS[event.kind], _or_crowd(session, crowd)) if session else None
    name = _or_crowd(scene.name(event.member), crowd)
    deed = _DEEDS.get(event.kind, "written")
    path = str(event.of("path") or "")
    folder, _, last = path.rpartition("/")
    if event.partition is not None and "/owners/" in path:
        verbs = {"created": f"owner of {ROWS}: {name}", "deleted": f"{name} releases {ROWS}"}
        return _Word("registry", verbs.get(deed, deed), 3)
    if folder == "/brokers/ids":
        return _Word("registry", {"created": "broker comes:", "deleted": "broker goes:"}.get(deed, "broker:"), 1, last)
    if folder == "/brokers/topics":
        return _Word("registry", f"topic {deed}:", 2, last)
    if folder.endswith("/ids") and event.member is not None:
        return _Word("registry", {"created": "registered:", "deleted": "id gone:"}.get(deed, deed), 1, name)
    return _Word("registry", deed, UNWANTED, last)


def _or_crowd(name: str, crowd: Collection[str]) -> str:
    return CROWD if name in crowd else name


def _watched(path: str) -> str:
    """What a watch was on, short: `ids`, `topic t1`, `brokers`."""
    if path == "/brokers/ids":
        return "brokers"
    if path == "/brokers/topics":
        return "topics"
    if path.startswith("/brokers/topics/"):
        return f"topic {path.rsplit('/', 1)[-1]}"
    return path.rsplit("/", 1)[-1]


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
