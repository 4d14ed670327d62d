"""Partition-time without an owner and with several, within windows of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.history.intervals import Interval

#: group -> (topic, partition) -> since when, in µs, it is there to be owned.
Places = Mapping[str, Mapping[tuple[str, int], int]]


@dataclass(slots=True)
class Window:
    """A stretch of time of a group. Those of one group do not overlap. Sums in partition-µs."""

    group: str
    begin_us: int
    end_us: int
    unowned_us: int = 0
    doubly_owned_us: int = 0


def add_ownership(
    windows: Sequence[Window], places: Places, registry: Iterable[Interval], belief: Iterable[Interval]
) -> None:
    """Set the sums of `windows` (by group and time): *unowned* is time in which the registry has
    no owner for a place that is there, *doubly owned* time in which members believe that they own
    what another does too (each member above the first)."""
    for window in windows:
        since = places.get(window.group, {}).values()
        window.unowned_us = sum(max(0, window.end_us - max(window.begin_us, begin)) for begin in since)
    for window, fresh_us, _ in _clipped(windows, registry, places):
        window.unowned_us -= fresh_us
    for window, fresh_us, length_us in _clipped(windows, belief, {}):
        window.doubly_owned_us += length_us - fresh_us


def _clipped(
    windows: Sequence[Window], intervals: Iterable[Interval], places: Places
) -> Iterator[tuple[Window, int, int]]:
    """Each interval in each window that it meets: how much of it there is *fresh* (covered by none
    before it, and not before its place was there), and its length there."""
    of_group: dict[str, list[Window]] = {}
    for window in windows:
        of_group.setdefault(window.group, []).append(window)
    ends = {group: [window.end_us for window in found] for group, found in of_group.items()}
    reached: dict[tuple[str, str, int], int] = {}
    for each in sorted(intervals, key=lambda interval: (interval.begin_us, interval.end_us)):
        since_us = places.get(each.group, {}).get((each.topic, each.partition), 0)
        covered_us = max(each.begin_us, since_us, reached.get(each.place, 0))
        reached[each.place] = max(each.end_us, covered_us)
        found = of_group.get(each.group, [])
        for window in found[bisect_right(ends.get(each.group, []), each.begin_us) :]:
            if window.begin_us >= each.end_us:
                break
            high = min(each.end_us, window.end_us)
            yield window, max(0, high - max(covered_us, window.begin_us)), high - max(each.begin_us, window.begin_us)
