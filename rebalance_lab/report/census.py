"""The census: all rows and members of a trial at once, if there are too many to draw them singly.

A strip for each layer shows how many partitions have one owner, several, or none, over the whole trial.
Below, a line of pixels for each member shows how many partitions it believes it owns, and when it
rebalances. Time is cut into bins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from rebalance_lab.history.events import Layer
from rebalance_lab.report.bands import Band, Scale, bands_of
from rebalance_lab.report.focus import Focus
from rebalance_lab.report.gantt import (
    AXIS_HEIGHT,
    LABEL_LINE,
    LEGEND_LENGTH,
    PLOT_LEFT,
    PLOT_WIDTH,
    WIDTH,
    Tick,
    ticks_of,
)
from rebalance_lab.report.raster import CLEAR, Pixel, data_uri
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import LAYERS
from rebalance_lab.report.text import count, seconds

BINS = 334
STRIP_HEIGHT = 46.0
STRIP_GAP = 12.0
#: The least height of anything that is drawn.
THINNEST = 2.0
#: Height of the members' picture, and of one member in it.
PICTURE_HEIGHT = 400.0
MEMBER_HEIGHT = (1.0, 6.0)
#: Members beyond this many share lines of the picture.
PICTURE_LINES = 400

OWNING, REBALANCING, DOUBLE = (0, 114, 178), (230, 159, 0), (211, 20, 58)


@dataclass(frozen=True, slots=True)
class Strip:
    """One layer. Paths are SVG areas: rows with one owner from below, with several on top of them.

    `most_several`: rows with several owners at the worst moment.
    """

    layer: Layer
    y: float
    one: str
    several: str
    most_several: int
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The members' pixels. `labels`: (y from its top, name). `rebalances`: whether there are any."""

    y: float
    height: float
    source: str
    labels: tuple[tuple[float, str], ...]
    title: str
    rebalances: bool


@dataclass(frozen=True, slots=True)
class Census:
    """The drawing. `window`: x and width of what the Gantt below it shows; None for everything."""

    prefix: str
    scale: Scale
    plot_top: float
    plot_height: float
    strip_height: float
    strips: tuple[Strip, ...]
    picture: Picture
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]
    window: tuple[float, float] | None
    summary: str
    width: int = WIDTH
    label_line: int = LABEL_LINE

    @property
    def height(self) -> float:
        return self.plot_top + self.plot_height + AXIS_HEIGHT


def census_of(scene: Scene, prefix: str, focus: Focus) -> Census | None:
    """The census of a scene; None if its rows and members can all be drawn."""
    if not focus.left_out and len(scene.people) <= LEGEND_LENGTH:
        return None
    scale = Scale(0, max(scene.end_us, 1), PLOT_LEFT, PLOT_WIDTH)
    bands, label_lines = bands_of(scene, scale, prefix)
    strips = tuple(_strip(scene, scale, layer, place) for place, layer in enumerate(LAYERS))
    picture = _picture(scene, scale, len(LAYERS) * (STRIP_HEIGHT + STRIP_GAP))
    whole = (focus.begin_us, focus.end_us) == (0, scale.end_us)
    return Census(
        prefix=prefix,
        scale=scale,
        plot_top=label_lines * LABEL_LINE + 6,
        plot_height=picture.y + picture.height,
        strip_height=STRIP_HEIGHT,
        strips=strips,
        picture=picture,
        bands=bands,
        ticks=ticks_of(scale),
        window=None if whole else scale.stretch(focus.begin_us, focus.end_us, 2),
        summary=(
            f"All {count(len(scene.rows), scene.words.place)} and {count(len(scene.people), scene.words.node)} "
            f"over {seconds(scene.end_us)}."
        ),
    )


def _strip(scene: Scene, scale: Scale, layer: Layer, place: int) -> Strip:
    overlaps = [(each.begin_us, each.end_us) for each in scene.overlaps if each.layer is layer]
    gaps = [(each.begin_us, each.end_us) for each in scene.gaps if each.layer is layer]
    several = most_at_once(overlaps, scale)
    nobody = mean_at_once(gaps, scale)
    total = max(len(scene.rows), 1)
    inside = [_middle(scale, nth) for nth in range(BINS)]
    one = [
        max(total - none - many, 0) / total if scene.working_us <= at < scene.closing_us else 0.0
        for none, many, at in zip(nobody, several, inside, strict=True)
    ]
    heights = [STRIP_HEIGHT * share for share in one]
    tops = [
        base + (max(STRIP_HEIGHT * many / total, THINNEST) if many else 0)
        for base, many in zip(heights, several, strict=True)
    ]
    worst = max(several, default=0)
    return Strip(
        layer=layer,
        y=place * (STRIP_HEIGHT + STRIP_GAP) + STRIP_GAP / 2,
        one=_area([0.0] * BINS, heights, scale),
        several=_area(heights, tops, scale),
        most_several=worst,
        title=(
            f"{layer.value}: of {count(total, scene.words.place)}, at worst {worst:,} with several "
            f"{scene.words.holder_noun}s at once and {max(nobody, default=0):,.0f} with none"
        ),
    )


def most_at_once(stretches: Iterable[tuple[int, int]], scale: Scale) -> list[int]:
    """For each bin, the largest number of spans at any moment in it."""
    turns = sorted(turn for begin, end in stretches if end > begin for turn in ((begin, 1), (end, -1)))
    most = [0] * BINS
    running = 0
    for (at, step), (until, _) in pairwise([*turns, (scale.end_us, 0)]):
        running += step
        if until > at and running:
            for nth in range(_bin(scale, at), _bin(scale, until - 1) + 1):
                most[nth] = max(most[nth], running)
    return most


def mean_at_once(stretches: Iterable[tuple[int, int]], scale: Scale) -> list[float]:
    """For each bin, the number of spans in it, averaged over its time."""
    length_us = (scale.end_us - scale.begin_us) / BINS
    total = [0.0] * BINS
    for begin, end in stretches:
        first, last = _bin(scale, begin), _bin(scale, max(end - 1, begin))
        for nth in range(first, last + 1):
            left = scale.begin_us + nth * length_us
            total[nth] += max(min(end, left + length_us) - max(begin, left), 0) / length_us
    return total


def _bin(scale: Scale, at_us: int) -> int:
    share = (at_us - scale.begin_us) / (scale.end_us - scale.begin_us)
    return min(max(int(share * BINS), 0), BINS - 1)


def _middle(scale: Scale, nth: int) -> float:
    return scale.begin_us + (nth + 0.5) * (scale.end_us - scale.begin_us) / BINS


def _area(bottoms: Sequence[float], tops: Sequence[float], scale: Scale) -> str:
    """An SVG path of steps between two heights, one piece for each run of bins that have any."""
    step = scale.width / BINS
    pieces = []
    nth = 0
    while nth < BINS:
        if tops[nth] <= bottoms[nth]:
            nth += 1
            continue
        first = nth
        while nth < BINS and tops[nth] > bottoms[nth]:
            nth += 1
        run = range(first, nth)
        x = [round(scale.left + step * place, 1) for place in range(first, nth + 1)]
        up = "".join(f"V{round(STRIP_HEIGHT - tops[place], 1)}H{x[place - first + 1]}" for place in run)
        down = "".join(f"V{round(STRIP_HEIGHT - bottoms[place], 1)}H{x[place - first]}" for place in reversed(run))
        pieces.append(f"M{x[0]},{round(STRIP_HEIGHT - bottoms[first], 1)}{up}{down}Z")
    return "".join(pieces)


def _picture(scene: Scene, scale: Scale, y: float) -> Picture:
    """A line of pixels for each member; if there are more than PICTURE_LINES, members share lines."""
    number = max(len(scene.people), 1)
    share = -(-number // PICTURE_LINES)
    lines = -(-number // share)
    places = {person.member: person.index // share for person in scene.people}
    owning, double = _beliefs(scene, scale, places, lines)
    busy = _rebalances(scene, scale, places, lines)
    most = max((value for line in owning for value in line), default=0) or 1
    rows = [
        [_pixel(sqrt(owning[line][nth] / most), busy[line][nth] / share, double[line][nth]) for nth in range(BINS)]
        for line in range(lines)
    ]
    height = lines * min(max(PICTURE_HEIGHT / lines, MEMBER_HEIGHT[0]), MEMBER_HEIGHT[1])
    every = max(-(-number * 14 // max(round(height), 1)), 1)
    labels = tuple(
        ((person.index + 0.5) * height / number, person.name) for person in scene.people if person.index % every == 0
    )
    words = scene.words
    believes = words.have[Layer.BELIEF].one
    title = f"A line for each {words.node}: the darker, the more {words.place}s it {believes}"
    return Picture(y, height, data_uri(rows), labels, title, rebalances=any(map(any, busy)))


def _beliefs(
    scene: Scene, scale: Scale, places: dict[str, int], lines: int
) -> tuple[list[list[float]], list[list[bool]]]:
    """For each bin, how many partitions the members of each line believe they own, and whether another member
    believes the same of one of these."""
    mine: list[list[tuple[int, int]]] = [[] for _ in range(lines)]
    for span in scene.spans:
        if span.layer is Layer.BELIEF:
            mine[places[span.member]].append((span.begin_us, span.end_us))
    double = [[False] * BINS for _ in range(lines)]
    for overlap in scene.overlaps:
        if overlap.layer is Layer.BELIEF:
            for member in overlap.members:
                for nth in range(_bin(scale, overlap.begin_us), _bin(scale, overlap.end_us) + 1):
                    double[places[member]][nth] = True
    return [mean_at_once(stretches, scale) for stretches in mine], double


def _rebalances(scene: Scene, scale: Scale, places: dict[str, int], lines: int) -> list[list[float]]:
    """For each bin, the share of time that the members of each line spend in a rebalance."""
    busy: list[list[tuple[int, int]]] = [[] for _ in range(lines)]
    for began, ended in scene.rebalances():
        if began.member in places:
            busy[places[began.member]].append((scene.since_start(began), scene.since_start(ended)))
    return [mean_at_once(stretches, scale) for stretches in busy]


def _pixel(owning: float, busy: float, double: bool) -> Pixel:
    if double:
        return (*DOUBLE, 255)
    if busy > 0.02:
        return (*REBALANCING, min(60 + round(busy * 195), 255))
    return (*OWNING, min(40 + round(owning * 215), 255)) if owning > 0 else CLEAR
