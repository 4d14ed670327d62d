"""The bands across all rows of the Gantt: faults, changes, closed sessions, the closing phase."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.report.scene import Fault, Scene
from rebalance_lab.report.text import exact_moment, seconds

#: The width of a letter in a band's label, in SVG units; enough for wide fonts.
LETTER = 7.3
#: Changes closer together than this (SVG units) share a label.
TOGETHER = 16
#: The number of targets that one label names.
NAMED = 4
#: The largest number of label lines above a drawing; a band without a line has only its tooltip.
LABEL_LINES = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps time to x: `begin_us` is at `left`, `end_us` at `left + width`."""

    begin_us: int
    end_us: int
    left: float
    width: float

    def x(self, at_us: int) -> float:
        """The x of a time. Times outside of the scale are placed at its edge."""
        share = (at_us - self.begin_us) / (self.end_us - self.begin_us)
        return round(self.left + min(max(share, 0), 1) * self.width, 2)

    def holds(self, begin_us: int, end_us: int) -> bool:
        """Whether any part of a time span is within the scale."""
        return begin_us <= self.end_us and end_us >= self.begin_us

    def stretch(self, begin_us: int, end_us: int, thinnest: float) -> tuple[float, float]:
        """x and width of a time span, at least `thinnest` wide."""
        x = self.x(begin_us)
        return x, max(round(self.x(end_us) - x, 2), thinnest)


@dataclass(frozen=True, slots=True)
class Band:
    """`kind`: fault | unproven | change | session | closing. `events`: the events that it represents. `verb`, `many`,
    `target`: of a change, for a label that several share. What follows is its place: `line` is the line above the plot
    that has its label, which starts at `label_x`; None if there is no room for it."""

    kind: str
    begin_us: int
    end_us: int
    label: str
    title: str
    events: tuple[EventId, ...]
    verb: str = ""
    many: str = ""
    target: str = ""
    id: str = ""
    x: float = 0
    width: float = 0
    label_x: float = 0
    line: int | None = None


def bands_of(scene: Scene, scale: Scale, prefix: str) -> tuple[tuple[Band, ...], int]:
    """The bands within the scale, and the number of lines that their labels need. Labels never overlap."""
    drafts = (*_faults(scene), *_sessions(scene), *_closing(scene))
    inside = [each for each in drafts if scale.holds(each.begin_us, each.end_us)]
    labels = _labels(inside, scale, scene.words.node)
    free_from: list[float] = []  # for each line of labels: the x from which it is free
    bands = []
    for number, draft in enumerate(sorted(inside, key=_in_time)):
        x, width = scale.stretch(draft.begin_us, draft.end_us, 0)
        label = labels[draft.events, draft.label]
        room = len(label) * LETTER + 10
        label_x = max(scale.left, min(x, scale.left + scale.width - room))
        line = next((nth for nth, free in enumerate(free_from) if free <= label_x), len(free_from))
        told = bool(label) and line < LABEL_LINES
        if told:
            free_from[line : line + 1] = [label_x + room]
        name, place = f"{prefix}-band-{number}", line if told else None
        bands.append(replace(draft, id=name, x=x, width=width, label=label, label_x=label_x, line=place))
    return tuple(bands), len(free_from)


def _in_time(draft: Band) -> tuple[int, str]:
    return draft.begin_us, draft.kind


def _labels(drafts: list[Band], scale: Scale, node: str) -> dict[tuple[tuple[EventId, ...], str], str]:
    """The label of each draft. Changes of one kind that are close together share the label of the first."""
    labels = {(draft.events, draft.label): draft.label for draft in drafts}
    runs: list[list[Band]] = []
    open_runs: dict[str, list[Band]] = {}
    for draft in sorted((each for each in drafts if each.kind == "change"), key=_in_time):
        run = open_runs.get(draft.verb)
        if run is None or scale.x(draft.begin_us) - scale.x(run[0].begin_us) > TOGETHER:
            open_runs[draft.verb] = run = []
            runs.append(run)
        run.append(draft)
    for run in runs:
        if len(run) > 1:
            names = [draft.target for draft in run]
            who = ", ".join(names) if len(names) <= NAMED else f"{len(names)} {node}s"
            labels |= {(draft.events, draft.label): "" for draft in run}
            labels[run[0].events, run[0].label] = f"{who} {run[0].many}"
    return labels


def _faults(scene: Scene) -> list[Band]:
    proofs: dict[tuple[str, object], list[EventId]] = {}
    for event in scene.events:
        if event.kind in {Kind.FAULT_BIT, Kind.FAULT_ENDED}:
            proofs.setdefault((event.actor, event.of("of")), []).append(event.id)
    return [_fault(fault, proofs.get(fault.event, [])) for fault in scene.faults]


def _fault(fault: Fault, others: list[EventId]) -> Band:
    kind = fault.kind
    length = "" if fault.ended_us is None else f" {seconds(fault.ended_us - fault.began_us)}"
    doubt = "" if fault.doubt is None else ", not proven"
    proof = f"Proof: {fault.proof}" if fault.doubt is None else f"It does not count: {fault.doubt}"
    what = "Change" if kind.change else "Fault"
    return Band(
        kind="unproven" if fault.doubt is not None else "change" if kind.change else "fault",
        begin_us=fault.began_us,
        end_us=fault.began_us if fault.ended_us is None else fault.ended_us,
        label=f"{fault.where} {kind.band}{length}{doubt}",
        title=f"{what} {fault.kind.name} on {fault.where} at {exact_moment(fault.began_us)} s{length}. {proof}.",
        events=(fault.event, *others),
        verb=kind.band,
        many=kind.many,
        target=fault.target,
    )


def _sessions(scene: Scene) -> list[Band]:
    """Sessions that the registry closed before the clean end of all members. A session that its own member closed by
    leaving is left out."""
    left = {(fault.target, fault.closed_us) for fault in scene.faults if fault.kind.change}
    return [
        Band(
            kind="session",
            begin_us=end.at_us,
            end_us=end.at_us,
            label=f"{end.name}'s session closed",
            title=f"ZooKeeper closes session {end.session} of {end.name} at {exact_moment(end.at_us)} s",
            events=(end.event,),
        )
        for end in scene.session_ends
        if end.at_us < scene.closing_us - TOLERANCE_US  # the server's clock and the runner's differ
        and (end.name, end.at_us) not in left
    ]


def _closing(scene: Scene) -> list[Band]:
    if scene.closing_us >= scene.end_us:
        return []
    title = (
        f"From {exact_moment(scene.closing_us)} s all {scene.words.node}s leave cleanly. "
        f"{scene.words.place.capitalize()}s without {scene.words.holder} are not an anomaly from here on"
    )
    return [Band("closing", scene.closing_us, scene.end_us, "end: all leave", title, ())]
