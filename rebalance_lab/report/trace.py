"""A trial as a trace in Chrome's JSON format, which Perfetto opens.

There is a process for each member, with a track for each partition that it believes it owns (slices of
one track must not overlap), one for its work on each, and one for its rebalances. ZooKeeper's owners and
sessions and the runner's faults are processes of their own. Flows lead from the change that fired a
watch to the watch, and from the watch to the rebalance.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.spacetime.arrows import Link, links_of
from rebalance_lab.report.spacetime.beats import Beat, beat_of
from rebalance_lab.report.spans import row_of

Record = dict[str, object]

#: What flows lead to, and what is drawn whether or not one does.
_TARGETS = frozenset({Kind.WATCH_FIRED, Kind.REBALANCE_BEGAN, Kind.EXPIRED})
_MOMENTS = frozenset(
    {Kind.WATCH_FIRED, Kind.EXPIRED, Kind.CONNECTED, Kind.DISCONNECTED, Kind.SESSION_CLOSED, Kind.PHASE}
)

#: Tracks of every process that are no partition's.
LIFE, REBALANCES = "events", "rebalances"


class _Tracks:
    """Numbers for processes and tracks, and the records that name them."""

    def __init__(self) -> None:
        self.names: list[Record] = []
        self._processes: dict[str, int] = {}
        self._tracks: dict[tuple[str, str], int] = {}

    def place(self, process: str, track: str) -> Record:
        if process not in self._processes:
            self._processes[process] = len(self._processes) + 1
            self._name("process_name", process, self._processes[process], 0)
        pid = self._processes[process]
        if (process, track) not in self._tracks:
            self._tracks[process, track] = len(self._tracks) + 1
            self._name("thread_name", track, pid, self._tracks[process, track])
        return {"pid": pid, "tid": self._tracks[process, track]}

    def _name(self, kind: str, name: str, pid: int, tid: int) -> None:
        self.names.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}})


def trace_of(history: History) -> bytes:
    """The trace, as JSON. Raises ValueError for a history without events."""
    scene = build_scene(history, intervals_of(history))
    tracks = _Tracks()
    links = links_of(scene, [beat for event in scene.events if (beat := _beat(scene, event)) is not None], scene.events)
    records = [*_spans(scene, tracks), *_rebalances(scene, tracks), *_faults(scene, tracks)]
    records += [*_moments(scene, tracks, links), *_flows(scene, tracks, links)]
    shape = {"displayTimeUnit": "ms", "traceEvents": [*tracks.names, *records]}
    return msgspec.json.encode(shape)


def _slice(name: str, begin_us: int, end_us: int, place: Record, **details: object) -> Record:
    return {"ph": "X", "name": name, "ts": begin_us, "dur": end_us - begin_us, **place, "args": details}


def _spans(scene: Scene, tracks: _Tracks) -> Iterator[Record]:
    for span in scene.spans:
        row, name = row_of(span), scene.name(span.member)
        if span.layer is Layer.REGISTRY:
            yield _slice(name, span.begin_us, span.end_us, tracks.place("zookeeper", f"owner of {row}"))
        else:
            yield _slice(
                str(row), span.begin_us, span.end_us, tracks.place(name, f"{scene.words.have[span.layer].one} {row}")
            )


def _rebalances(scene: Scene, tracks: _Tracks) -> Iterator[Record]:
    for began, ended in scene.rebalances():
        place, outcome = tracks.place(began.actor, REBALANCES), ended.of("outcome")
        yield _slice("rebalance", scene.since_start(began), scene.since_start(ended), place, outcome=outcome)


def _faults(scene: Scene, tracks: _Tracks) -> Iterator[Record]:
    for fault in scene.faults:
        end_us = fault.began_us if fault.ended_us is None else fault.ended_us
        place = tracks.place("runner", f"faults on {fault.target}")
        yield _slice(
            f"{fault.kind.name} {fault.target}", fault.began_us, end_us, place, proof=fault.proof, doubt=fault.doubt
        )


def _beat(scene: Scene, event: Event) -> Beat | None:
    return beat_of(scene, event, False) if event.kind in _TARGETS else None


def _moments(scene: Scene, tracks: _Tracks, links: list[Link]) -> Iterator[Record]:
    """Slices of 1 µs, because flows cannot end in an instant."""
    sources = {link.source for link in links}
    for event in scene.events:
        if event.kind in _MOMENTS or event.id in sources:
            at_us = scene.since_start(event)
            name = f"{event.kind.value} {event.of('path') or ''}".strip()
            yield _slice(name, at_us, at_us + 1, tracks.place(event.actor, LIFE), event=event.n)


def _flows(scene: Scene, tracks: _Tracks, links: list[Link]) -> Iterator[Record]:
    """Arrows from a change to the watch that it fired, and from that to the rebalance."""
    ends = {each for link in links for each in (link.source, link.target)}
    known = {event.id: event for event in scene.events if event.id in ends}
    for number, link in enumerate(links, start=1):
        for phase, event in (("s", known[link.source]), ("f", known[link.target])):
            track = REBALANCES if event.kind is Kind.REBALANCE_BEGAN else LIFE
            flow: Record = {"ph": phase, "id": number, "name": link.kind, "cat": "cause", "bp": "e"}
            yield {**flow, "ts": scene.since_start(event), **tracks.place(event.actor, track)}
