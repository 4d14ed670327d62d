"""What lies across all rows of the Gantt: faults, closed sessions, the closing phase."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.report import glossary
from rebalance_lab.report.scene import Fault, Scene
from rebalance_lab.report.text import exact_moment, seconds

#: About the width of a letter in a band's label, in SVG units.
LETTER = 6.4
#: Lines of labels above a drawing, at most; a band beyond them keeps its tooltip only.
LABEL_LINES = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """Time to x: `begin_us` lies at `left`, `end_us` at `left + width`."""

    begin_us: int
    end_us: int
    left: float
    width: float

    def x(self, at_us: int) -> float:
        """What lies outside stands at the edge."""
        share = (at_us - self.begin_us) / (self.end_us - self.begin_us)
        return round(self.left + min(max(share, 0), 1) * self.width, 2)

    def holds(self, begin_us: int, end_us: int) -> bool:
        """Whether anything of a stretch of time lies within."""
        return begin_us <= self.end_us and end_us >= self.begin_us

    def stretch(self, begin_us: int, end_us: int, thinnest: float) -> tuple[float, float]:
        """x and width of a stretch of time, at least `thinnest` wide."""
        x = self.x(begin_us)
        return x, max(round(self.x(end_us) - x, 2), thinnest)


@dataclass(frozen=True, slots=True)
class Band:
    """`kind`: fault | unproven | session | closing. `line`: which line above the plot holds
    its label, which starts at `label_x`; None where there is no room for it. `events`: the
    events it stands for."""

    id: str
    kind: str
    begin_us: int
    end_us: int
    x: float
    width: float
    label: str
    label_x: float
    line: int | None
    title: str
    events: tuple[EventId, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    kind: str
    begin_us: int
    end_us: int
    label: str
    title: str
    events: tuple[EventId, ...]


def bands_of(scene: Scene, scale: Scale, prefix: str) -> tuple[tuple[Band, ...], int]:
    """The bands within the scale, and how many lines their labels take. Labels never lie on
    each other."""
    drafts = (*_faults(scene), *_sessions(scene), *_closing(scene))
    inside = [each for each in drafts if scale.holds(each.begin_us, each.end_us)]
    free_from: list[float] = []  # for each line of labels: the x from which it is free
    bands = []
    for number, draft in enumerate(sorted(inside, key=lambda each: (each.begin_us, each.kind))):
        x, width = scale.stretch(draft.begin_us, draft.end_us, 0)
        room = len(draft.label) * LETTER + 10
        label_x = max(scale.left, min(x, scale.left + scale.width - room))
        line = next((nth for nth, free in enumerate(free_from) if free <= label_x), len(free_from))
        if line < LABEL_LINES:
            free_from[line : line + 1] = [label_x + room]
        bands.append(
            Band(
                id=f"{prefix}-band-{number}",
                kind=draft.kind,
                begin_us=draft.begin_us,
                end_us=draft.end_us,
                x=x,
                width=width,
                label=draft.label,
                label_x=label_x,
                line=line if line < LABEL_LINES else None,
                title=draft.title,
                events=draft.events,
            )
        )
    return tuple(bands), len(free_from)


def _faults(scene: Scene) -> list[_Draft]:
    return [_fault(scene, fault) for fault in scene.faults]


def _fault(scene: Scene, fault: Fault) -> _Draft:
    word = glossary.fault_words(fault.name).band
    length = "" if fault.ended_us is None else f" {seconds(fault.ended_us - fault.began_us)}"
    doubt = "" if fault.doubt is None else ", not proven"
    others = tuple(
        event.id
        for event in scene.events
        if event.kind in {Kind.FAULT_BIT, Kind.FAULT_ENDED} and (event.actor, event.of("of")) == fault.event
    )
    proof = f"Proof: {fault.proof}" if fault.doubt is None else f"It does not count: {fault.doubt}"
    return _Draft(
        kind="fault" if fault.doubt is None else "unproven",
        begin_us=fault.began_us,
        end_us=fault.began_us if fault.ended_us is None else fault.ended_us,
        label=f"{fault.target} {word}{length}{doubt}",
        title=f"Fault {fault.name} on {fault.target} at {exact_moment(fault.began_us)} s{length}. {proof}.",
        events=(fault.event, *others),
    )


def _sessions(scene: Scene) -> list[_Draft]:
    """Sessions the registry closed before the members' own clean end."""
    return [
        _Draft(
            kind="session",
            begin_us=end.at_us,
            end_us=end.at_us,
            label=f"{end.name}'s session closed",
            title=f"ZooKeeper closes session {end.session} of {end.name} at {exact_moment(end.at_us)} s",
            events=(end.event,),
        )
        for end in scene.session_ends
        if end.at_us < scene.closing_us - TOLERANCE_US  # the server's clock and the runner's differ
    ]


def _closing(scene: Scene) -> list[_Draft]:
    if scene.closing_us >= scene.end_us:
        return []
    title = (
        f"From {exact_moment(scene.closing_us)} s all members leave cleanly: what is unowned from here is no anomaly"
    )
    return [_Draft("closing", scene.closing_us, scene.end_us, "end: all leave", title, ())]
