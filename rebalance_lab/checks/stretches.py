"""Stretches of time with the events that bound them: union, gaps, common part."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_lab.history.events import EventId


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `begin_us` to `end_us`; `begin` and `end` are the events that bound it, None at the history's end."""

    begin_us: int
    end_us: int
    begin: EventId | None
    end: EventId | None

    @property
    def length_us(self) -> int:
        return self.end_us - self.begin_us


def union(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Disjoint stretches that cover the same time, in order; those that touch become one."""
    merged: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda one: (one.begin_us, one.end_us)):
        last = merged[-1] if merged else None
        if last is None or stretch.begin_us > last.end_us:
            merged.append(stretch)
        elif stretch.end_us > last.end_us:
            merged[-1] = Stretch(last.begin_us, stretch.end_us, last.begin, stretch.end)
    return merged


def gaps(covered: Sequence[Stretch], scope: Stretch) -> list[Stretch]:
    """What `covered` (a union) leaves open of `scope`, in order."""
    found: list[Stretch] = []
    begin_us, begin = scope.begin_us, scope.begin
    first = bisect_right(covered, scope.begin_us, key=lambda stretch: stretch.end_us)
    for stretch in (covered[index] for index in range(first, len(covered))):
        if stretch.begin_us >= scope.end_us:
            break
        if stretch.begin_us > begin_us:
            found.append(Stretch(begin_us, stretch.begin_us, begin, stretch.begin))
        begin_us, begin = stretch.end_us, stretch.end
    if scope.end_us > begin_us:
        found.append(Stretch(begin_us, scope.end_us, begin, scope.end))
    return found


def common(one: Stretch, other: Stretch) -> Stretch | None:
    """The part that both cover, with the events that bound it (of two bounds at one moment, one with an event); None if
    it has no length."""
    late = max(one, other, key=lambda part: (part.begin_us, part.begin is not None))
    early = min(one, other, key=lambda part: (part.end_us, part.end is None))
    if late.begin_us >= early.end_us:
        return None
    return Stretch(late.begin_us, early.end_us, late.begin, early.end)


def parts(ones: Iterable[Stretch], others: Sequence[Stretch]) -> list[Stretch]:
    """The parts that one of `ones` and one of `others` cover."""
    return [part for one in ones for other in others if (part := common(one, other)) is not None]
