"""From moments to heights: later is never higher, marks do not overlap, and long quiet periods are cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from rebalance_lab.report.spacetime.arrows import Link
from rebalance_lab.report.spacetime.beats import Beat

#: Room above the first moment, for the lanes' names.
HEAD = 40.0
#: Height of a label, and of the least slope of an arrow.
LINE = 16.0
SLOPE = 9.0
#: A stretch without any mark that is so long is cut.
QUIET_US = 200_000
QUIET_HEIGHT = 34.0
#: Rounds in which times are put right along chains of arrows.
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Timeline:
    """`times`: each moment once; `heights`: the y of its first and of its last beat. `ys`: the y of each beat, in the
    order of the beats. `pauses`: (y of the middle, µs) of each time that is cut out."""

    times: tuple[int, ...]
    heights: tuple[tuple[float, float], ...]
    ys: tuple[float, ...]
    pauses: tuple[tuple[float, int], ...]

    @property
    def begin_us(self) -> int:
        return self.times[0]

    @property
    def end_us(self) -> int:
        return self.times[-1]

    @property
    def bottom(self) -> float:
        return self.heights[-1][1]

    def y(self, at_us: int) -> float:
        """The height of any moment. Moments outside are placed at the edge."""
        if at_us < self.begin_us:
            return self.heights[0][0] - SLOPE
        if at_us > self.end_us:
            return self.bottom + SLOPE
        place = bisect_left(self.times, at_us)
        if self.times[place] == at_us:
            return self.heights[place][0]
        before, after = self.times[place - 1], self.times[place]
        (_, top), (bottom, _) = self.heights[place - 1], self.heights[place]
        return round(top + (at_us - before) / (after - before) * (bottom - top), 1)


def lay_out(beats: Sequence[Beat], links: Sequence[Link]) -> Timeline:
    """The heights of beats (at least one) in the order of time, sources before what they led to."""
    places = {each: nth for nth, beat in enumerate(beats) for each in beat.ids}
    pairs = [(places[link.source], places[link.target]) for link in links]
    order = _ordered(beats, [pair for pair in pairs if pair[0] != pair[1]])
    sources: dict[int, list[int]] = {}
    for source, target in pairs:
        if source != target:
            sources.setdefault(target, []).append(source)
    ys = [0.0] * len(beats)
    free: dict[str, float] = {}
    pauses = []
    y, now_us = HEAD + LINE, order[0][0]
    for at_us, _, nth in order:
        beat = beats[nth]
        quiet_us = at_us - now_us
        before = y
        y += QUIET_HEIGHT if quiet_us >= QUIET_US else _step(quiet_us)
        y = max(y, free.get(beat.actor, 0.0))
        y = max([y, *(ys[source] + SLOPE for source in sources.get(nth, ()) if beats[source].actor != beat.actor)])
        if quiet_us >= QUIET_US:
            pauses.append((round((before + y) / 2, 1), quiet_us))
        now_us = at_us
        ys[nth] = y = round(y, 1)
        free[beat.actor] = y + LINE
    times, heights = _steps([(at_us, ys[nth]) for at_us, _, nth in order])
    return Timeline(times, heights, tuple(ys), tuple(pauses))


def _step(quiet_us: int) -> float:
    return 0.0 if quiet_us <= 0 else min(2 + 4 * log10(1 + quiet_us / 200), 20)


def _ordered(beats: Sequence[Beat], pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(µs, depth, place) of each beat, sorted. Clocks of two layers differ a little, so an effect is moved after its
    cause."""
    keys = [(beat.at_us, 0) for beat in beats]
    for _ in range(ROUNDS):
        late = [(source, target) for source, target in pairs if keys[target] <= keys[source]]
        if not late:
            break
        for source, target in late:
            keys[target] = max(keys[target], (keys[source][0], keys[source][1] + 1))
    return sorted((at_us, depth, nth) for nth, (at_us, depth) in enumerate(keys))


def _steps(points: Sequence[tuple[int, float]]) -> tuple[tuple[int, ...], tuple[tuple[float, float], ...]]:
    """Each moment once, with the heights of its first and last beat."""
    heights: dict[int, tuple[float, float]] = {}
    for at_us, y in points:
        heights[at_us] = (heights.get(at_us, (y, y))[0], y)
    return tuple(heights), tuple(heights.values())
