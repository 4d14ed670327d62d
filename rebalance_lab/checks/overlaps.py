"""Where two members have one partition: shared by the three overlap checks (O1, O1e, O2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rebalance_lab.history.intervals import Interval

#: Begin and end of an interval on the axis on which a layer is compared.
Span = Callable[[Interval], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two intervals of different members on one partition that overlap; `first` begins first.
    Different are also two processes that go by one member's name."""

    first: Interval
    second: Interval

    @property
    def names(self) -> str:
        """Both members for a sentence."""
        one, other = self.first, self.second
        if one.member == other.member:
            return f"{one.actor} and {other.actor}, each as {one.member},"
        return f"{one.member} and {other.member}"

    @property
    def begin_us(self) -> int:
        return max(self.first.begin_us, self.second.begin_us)

    @property
    def end_us(self) -> int:
        """Never before `begin_us`: the registry's order is not that of its clock."""
        return max(self.begin_us, min(self.first.end_us, self.second.end_us))

    @property
    def length_us(self) -> int:
        return self.end_us - self.begin_us


def in_time(interval: Interval) -> tuple[int, int]:
    return (interval.begin_us, interval.end_us)


def overlaps(intervals: Iterable[Interval], *, span: Span = in_time, closed: bool) -> list[Overlap]:
    """Every overlapping pair, by partition and then by begin.

    `closed`: intervals hold their ends, so that a shared instant is an overlap; otherwise the
    overlap must have a length on the axis of `span`.
    """
    found: list[Overlap] = []
    for rows in _by_place(intervals).values():
        ordered = sorted(rows, key=span)
        active: list[Interval] = []
        for interval in ordered:
            begin, end = span(interval)
            active = [former for former in active if _reaches(span(former)[1], begin, closed)]
            if closed or end > begin:
                found.extend(Overlap(former, interval) for former in active if _who(former) != _who(interval))
            active.append(interval)
    return found


def _who(interval: Interval) -> tuple[str, str]:
    return (interval.member, interval.actor)


def _reaches(end: int, begin: int, closed: bool) -> bool:
    return end >= begin if closed else end > begin


def _by_place(intervals: Iterable[Interval]) -> dict[tuple[str, str, int], list[Interval]]:
    places: dict[tuple[str, str, int], list[Interval]] = {}
    for interval in intervals:
        places.setdefault(interval.place, []).append(interval)
    return dict(sorted(places.items()))


def longest(found: list[Overlap]) -> Overlap:
    """The overlap a finding is about: the longest, of equals the one that began first."""
    return min(found, key=lambda overlap: (-overlap.length_us, overlap.begin_us))


def measures(found: list[Overlap]) -> dict[str, int]:
    """`count`: overlapping pairs of intervals; `longest_us`: of one pair; `total_us`:
    partition-microseconds with more than one member, where three at once count once."""
    total_us = 0
    reached: dict[tuple[str, str, int], int] = {}
    for overlap in sorted(found, key=lambda overlap: overlap.begin_us):
        place = overlap.first.place
        begin_us = max(overlap.begin_us, reached.get(place, overlap.begin_us))
        total_us += max(0, overlap.end_us - begin_us)
        reached[place] = max(begin_us, overlap.end_us)
    longest_us = max((overlap.length_us for overlap in found), default=0)
    return {"count": len(found), "longest_us": longest_us, "total_us": total_us}
