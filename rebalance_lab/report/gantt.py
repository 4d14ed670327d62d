"""The ownership Gantt: the position of everything. The template only writes it as SVG.

There is a row for each partition, with three lanes (belief, registry, effect), coloured by member.
Lengths are SVG units of a drawing `WIDTH` wide; times are µs from the trial's start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count as counter
from math import ceil, floor

from rebalance_lab.history.events import Event, EventId, Layer
from rebalance_lab.history.intervals import NO_PARTITION
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.report.bands import Band, Scale, bands_of
from rebalance_lab.report.focus import Focus
from rebalance_lab.report.palette import Paint, paint
from rebalance_lab.report.scene import Person, Scene
from rebalance_lab.report.spans import LAYERS, Gap, Overlap, Row, row_of
from rebalance_lab.report.text import count, exact_moment, listed, seconds

WIDTH = 1160
PLOT_LEFT = 146
PLOT_WIDTH = WIDTH - PLOT_LEFT - 12
LABEL_LINE = 17
AXIS_HEIGHT = 36
#: The least width of a box that can be seen.
THINNEST = 1.5
#: About the width of a letter in a box, in SVG units.
LETTER = 7.0
#: The largest number of letters in a row's label; the tooltip has the whole label.
LABEL_LETTERS = 13
#: The largest number of members that a legend names; with more, there is a census.
LEGEND_LENGTH = 18

#: Rows up to which count, lane height, gap between lanes, gap between rows.
DENSITIES = ((12, 13.0, 2.0, 9.0), (24, 8.0, 1.0, 7.0), (1_000_000, 5.0, 1.0, 5.0))


@dataclass(frozen=True, slots=True)
class Box:
    """One rectangle of a lane. `kind`: held | unowned | overlap. `label` is written into it."""

    id: str
    kind: str
    begin_us: int
    end_us: int
    members: tuple[str, ...]
    x: float
    width: float
    paint: Paint | None
    label: str
    title: str

    @property
    def label_width(self) -> float:
        return round(LETTER * len(self.label) + 6, 1)


@dataclass(frozen=True, slots=True)
class Lane:
    """A layer of a row; `y` is counted from the row's top. Boxes are in painting order."""

    layer: Layer
    y: float
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the picture."""

    row: Row
    label: str
    y: float
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Gantt:
    """The whole drawing.

    `anchors`: the box or band of an event that bounds one. `legend`: (name, consumer id, paint).
    `labelled`: rows are high enough for the lanes' names. `summary`: the drawing in one sentence.
    `unnamed`: members it shows beyond those of the legend; `left_out`: rows it does not show.
    """

    prefix: str
    scale: Scale
    plot_top: float
    plot_height: float
    lane_height: float
    row_height: float
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]
    legend: tuple[tuple[str, str, Paint], ...]
    unnamed: int
    anchors: Mapping[EventId, str]
    labelled: bool
    summary: str
    left_out: int = 0
    width: int = WIDTH
    label_line: int = LABEL_LINE

    @property
    def height(self) -> float:
        return self.plot_top + self.plot_height + AXIS_HEIGHT

    def find(self, layer: Layer, row: Row, at_us: int, kinds: tuple[str, ...]) -> tuple[Box, ...]:
        """The boxes of these kinds at a moment, the topmost last."""
        return tuple(
            box
            for line in self.lines
            for lane in line.lanes
            if line.row == row and lane.layer is layer
            for box in lane.boxes
            if box.kind in kinds and box.begin_us <= at_us <= box.end_us
        )

    def anchor(self, event: Event, at_us: int) -> str | None:
        """The id of the element that shows an event: what it bounds, or its member's box around it."""
        if event.id in self.anchors:
            return self.anchors[event.id]
        if event.layer not in LAYERS or event.topic is None or event.partition is None:
            return None
        row = row_of(event)
        return next(
            (box.id for box in self.find(event.layer, row, at_us, ("held",)) if event.member in box.members), None
        )


def draw(scene: Scene, prefix: str, focus: Focus | None = None, *, until_us: int | None = None) -> Gantt:
    """The Gantt of a scene: the rows and window of `focus`, by default all. `prefix` begins every id. `until_us`
    extends the time axis of a whole trial beyond its end, so that two drawings can share a scale."""
    focus = focus or Focus(scene.rows, 0, max(scene.end_us, 1))
    end_us = focus.end_us if until_us is None or focus.left_out else max(until_us, 1)
    scale = Scale(focus.begin_us, end_us, PLOT_LEFT, PLOT_WIDTH)
    lane_height, lane_gap, row_gap = next(each[1:] for each in DENSITIES if len(focus.rows) <= each[0])
    row_height = 3 * lane_height + 2 * lane_gap + row_gap
    bands, label_lines = bands_of(scene, scale, prefix)
    anchors: dict[EventId, str] = {event: band.id for band in bands for event in band.events}
    boxes = _boxes(scene, focus, scale, prefix, anchors)
    lines = tuple(
        Line(
            row=row,
            label=_row_label(row),
            y=place * row_height + row_gap / 2,
            lanes=tuple(
                Lane(layer, nth * (lane_height + lane_gap), tuple(boxes.get((row, layer), ())))
                for nth, layer in enumerate(LAYERS)
            ),
        )
        for place, row in enumerate(focus.rows)
    )
    shown = _shown(scene, lines)
    named = shown[:LEGEND_LENGTH]
    return Gantt(
        prefix=prefix,
        scale=scale,
        plot_top=label_lines * LABEL_LINE + 6,
        plot_height=max(len(lines), 1) * row_height,
        lane_height=lane_height,
        row_height=row_height - row_gap,
        lines=lines,
        bands=bands,
        ticks=ticks_of(scale),
        legend=tuple((each.name, each.member, paint(each.index)) for each in named),
        unnamed=len(shown) - len(named),
        anchors=anchors,
        labelled=lane_height >= DENSITIES[0][1],
        summary=_summary(scene, focus),
        left_out=focus.left_out,
    )


def _shown(scene: Scene, lines: tuple[Line, ...]) -> list[Person]:
    """The members that boxes of the drawing name."""
    met = {member for line in lines for lane in line.lanes for box in lane.boxes for member in box.members}
    return [person for person in scene.people if person.member in met]


def _boxes(
    scene: Scene, focus: Focus, scale: Scale, prefix: str, anchors: dict[EventId, str]
) -> dict[tuple[Row, Layer], list[Box]]:
    """Boxes by lane, in painting order: gaps, then owners, then overlaps on top."""
    rows = frozenset(focus.rows)
    boxes: dict[tuple[Row, Layer], list[Box]] = {}
    numbers = counter()
    places = {person.member: person.index for person in scene.people}
    having = scene.words.having

    def add(
        kind: str, row: Row, item: Gap | Span | Overlap, members: tuple[str, ...], colour: Paint | None, title: str
    ) -> str:
        x, width = scale.stretch(item.begin_us, item.end_us, THINNEST)
        names = " + ".join(scene.name(member) for member in members)
        box = Box(
            id=f"{prefix}-{kind}-{next(numbers)}",
            kind=kind,
            begin_us=item.begin_us,
            end_us=item.end_us,
            members=members,
            x=x,
            width=width,
            paint=colour,
            label=names if members and width > LETTER * len(names) + 10 else "",
            title=f"{title}, {exact_moment(item.begin_us)} to {exact_moment(item.end_us)} s",
        )
        boxes.setdefault((row, item.layer), []).append(box)
        return box.id

    def drawn(item: Gap | Span | Overlap) -> bool:
        return row_of(item) in rows and scale.holds(item.begin_us, item.end_us)

    for gap in filter(drawn, scene.gaps):
        add(
            "unowned",
            gap.row,
            gap,
            (),
            None,
            f"{having(gap.row, gap.layer).none} {gap.row} for {seconds(gap.length_us)}",
        )
    for span in filter(drawn, scene.spans):
        row = row_of(span)
        title = f"{scene.name(span.member)} {having(row, span.layer).one} {row} ({span.member})"
        box_id = add("held", row, span, (span.member,), paint(places[span.member]), title)
        anchors.setdefault(span.begin, box_id)
        if span.end is not None:
            anchors.setdefault(span.end, box_id)
    for overlap in filter(drawn, scene.overlaps):
        names = listed([scene.name(member) for member in overlap.members])
        have = having(overlap.row, overlap.layer).several
        title = f"Overlap of {seconds(overlap.length_us)}: {names} {have} {overlap.row}"
        add("overlap", overlap.row, overlap, overlap.members, None, title)
    return boxes


def _row_label(row: Row) -> str:
    number = str(row).removeprefix(row.topic)
    room = LABEL_LETTERS - len(number)
    return (row.topic if len(row.topic) <= room else row.topic[: room - 1] + "…") + number


def ticks_of(scale: Scale) -> tuple[Tick, ...]:
    """At most 16 ticks at round seconds (or parts of one, in a short time)."""
    begin_s, end_s = scale.begin_us / 1_000_000, scale.end_us / 1_000_000
    steps = (m * 10**e for e in range(-6, 9) for m in (1, 2, 5))
    step = next(step for step in steps if (end_s - begin_s) / step <= 16)
    numbers = range(ceil(begin_s / step - 1e-9), floor(end_s / step + 1e-9) + 1)
    return tuple(Tick(scale.x(round(n * step * 1_000_000)), f"{round(n * step, 6):.9g}") for n in numbers)


def _summary(scene: Scene, focus: Focus) -> str:
    overlaps = {layer: scene.longest(layer) for layer in LAYERS}
    told = [f"{layer.value} {seconds(each.length_us)}" for layer, each in overlaps.items() if each is not None]
    longest = f"longest overlaps: {', '.join(told)}" if told else "no overlap in any layer"
    words = scene.words
    if not scene.rows:
        return f"Faults and changes over {seconds(scene.end_us)}; no {words.place} is drawn."
    drawn = f", of which {len(focus.rows)} are drawn here" if focus.left_out else ""
    partitions = sum(row.partition != NO_PARTITION for row in scene.rows)
    what = [count(partitions, words.place)] if partitions else []
    what += [f"the {row}" for row in scene.rows if row.partition == NO_PARTITION]
    return (
        f"{words.figure} of {listed(what)} by {count(len(scene.people), words.node)} "
        f"over {seconds(scene.end_us)}{drawn}; {longest}."
    )
