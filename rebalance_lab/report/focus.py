"""What of a trial is drawn row by row: all of it if that is legible, else what matters most.

A group of hundreds has more rows than people can read, and more boxes than a page can hold. Then only
the rows of an anomaly are drawn, around its time, below a census of all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.intervals import Interval as Span
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Gap, Overlap, Row, row_of

#: The largest number of rows that people can read together.
ROWS_LEGIBLE = 60
#: The number of rows drawn if not all are: few enough that names fit into their boxes.
ROWS_PICKED = 12
#: The largest number of boxes in one drawing: about 350 bytes each.
BOXES = 2_400
#: The share of a window that is left free on each side.
MARGIN = 0.08
#: A window longer than this share of the trial is the whole trial.
NEARLY_ALL = 0.6


@dataclass(frozen=True, slots=True)
class Focus:
    """The rows and the window (µs) to draw. `left_out`: the number of rows that are only in the census."""

    rows: tuple[Row, ...]
    begin_us: int
    end_us: int
    left_out: int = 0


def focus_on(scene: Scene, witness: Iterable[EventId] = (), *, most: int = BOXES) -> Focus:
    """What to draw of a scene, in about `most` boxes. `witness`: the events that prove its anomaly."""
    whole = Focus(scene.rows, 0, max(scene.end_us, 1))
    if len(scene.rows) <= ROWS_LEGIBLE and sum(1 for _ in _boxes(scene, whole)) <= most:
        return whole
    proof = frozenset(witness)
    begin_us, end_us = _window(scene, proof)
    inside = Counter(_boxes(scene, Focus(scene.rows, begin_us, end_us)))
    concern = _concern(scene, proof)
    picked: list[Row] = []
    for row in sorted(scene.rows, key=lambda row: (-concern[row], row))[:ROWS_PICKED]:
        if picked and sum(inside[each] for each in (*picked, row)) > most:
            break
        picked.append(row)
    return Focus(tuple(sorted(picked)), begin_us, end_us, len(scene.rows) - len(picked))


def _boxes(scene: Scene, focus: Focus) -> Iterator[Row]:
    """The row of each box in a drawing of the focus."""
    rows = frozenset(focus.rows)
    items: Iterable[Span | Gap | Overlap] = (*scene.spans, *scene.gaps, *scene.overlaps)
    for each in items:
        row = row_of(each)
        if row in rows and each.begin_us <= focus.end_us and each.end_us >= focus.begin_us:
            yield row


def _concern(scene: Scene, witness: frozenset[EventId]) -> Counter[Row]:
    """How much each row matters: rows of the witness first, then by time with several owners, then by time without an
    owner."""
    concern: Counter[Row] = Counter()
    for overlap in scene.overlaps:
        concern[overlap.row] += 1000 * overlap.length_us
    for gap in scene.gaps:
        if gap.layer is Layer.REGISTRY:
            concern[gap.row] += gap.length_us
    first = concern.total() + 1
    for event in scene.events:
        if event.id in witness and event.topic is not None and event.partition is not None:
            concern[row_of(event)] += first
    return concern


def _window(scene: Scene, witness: frozenset[EventId]) -> tuple[int, int]:
    """From the first fault or the begin of the anomaly to the end of both, with a margin.

    Of three or more witnesses the first may be long before the anomaly, which depends on it.
    """
    times = sorted(scene.since_start(event) for event in scene.events if event.id in witness)
    moments = times[1:] if len(times) > 2 else times
    for fault in scene.faults:
        moments += [fault.began_us] if fault.ended_us is None else [fault.began_us, fault.ended_us]
    if not moments:
        return 0, max(scene.end_us, 1)
    margin_us = max(round((max(moments) - min(moments)) * MARGIN), 100_000)
    begin_us, end_us = max(min(moments) - margin_us, 0), min(max(moments) + margin_us, scene.end_us)
    if end_us - begin_us > NEARLY_ALL * scene.end_us:
        return 0, max(scene.end_us, 1)
    return begin_us, end_us
