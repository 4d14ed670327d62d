"""Times in which two members have the same partition, for the overlap checks (O1, O1e, O2, Z10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval, owner_claim, work_period_ms
from rebalance_lab.history.views import events_of, grouped, once

#: Begin and end of an interval on the axis on which a layer is compared.
Span = Callable[[Interval], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two overlapping intervals of different members on one partition; `first` begins first. Two processes with one
    member's name also count as different members."""

    first: Interval
    second: Interval

    @property
    def names(self) -> str:
        """Both members, as the subject of a sentence."""
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

    `closed`: intervals include their ends, so a shared instant is an overlap; otherwise the overlap must have a length
    on the axis of `span`.
    """
    found: list[Overlap] = []
    for _, rows in sorted(grouped(intervals, lambda interval: interval.place).items()):
        active: list[Interval] = []
        for interval in sorted(rows, key=span):
            begin, end = span(interval)
            active = [each for each in active if span(each)[1] > begin or (closed and span(each)[1] == begin)]
            if closed or end > begin:
                found.extend(Overlap(each, interval) for each in active if each.holder != interval.holder)
            active.append(interval)
    return found


def longest(found: list[Overlap]) -> Overlap:
    """The overlap that a finding reports: the longest, and of equals the first."""
    return min(found, key=lambda overlap: (-overlap.length_us, overlap.begin_us))


def measures(found: list[Overlap]) -> dict[str, int]:
    """`count`: overlapping pairs of intervals; `longest_us`: the longest; `total_us`: partition-microseconds with more
    than one member (three at once count once)."""
    total_us = 0
    reached: dict[tuple[str, str, int], int] = {}
    for overlap in sorted(found, key=lambda overlap: overlap.begin_us):
        place = overlap.first.place
        begin_us = max(overlap.begin_us, reached.get(place, overlap.begin_us))
        total_us += max(0, overlap.end_us - begin_us)
        reached[place] = max(begin_us, overlap.end_us)
    longest_us = max((overlap.length_us for overlap in found), default=0)
    return {"count": len(found), "longest_us": longest_us, "total_us": total_us}


def reports_in(history: History, run: Interval) -> list[Event]:
    """A member's reports of work in an effect run, in order; a report at a stop comes last."""
    reports = _reports(history)[run.actor, (*run.place, run.member)]
    return [event for event in reports if run.begin_us <= event.at_us <= run.end_us]


def worked_for_a_period(history: History, run: Interval, since_us: int = 0) -> bool:
    """Whether a member reported work in an effect run at two moments, from `since_us` on, that are a work period apart
    (less 2 ms; the report at a stop does not count). Closer reports show only one moment of work, and may be late, so
    they do not show when it was."""
    period_us = _periods_us(history).get(run.actor, work_period_ms(history.trial) * 1000)
    times = [event.at_us for event in reports_in(history, run) if event.at_us >= since_us and not event.of("last")]
    return bool(times) and times[-1] - times[0] >= max(1, period_us - TOLERANCE_US)


@once
def _reports(history: History) -> Mapping[tuple[str, object], Sequence[Event]]:
    """(process, claim) -> its reports of work."""
    return grouped(events_of(history, Kind.WORKED), lambda event: (event.actor, owner_claim(event)))


@once
def _periods_us(history: History) -> Mapping[str, int]:
    """The work periods of the processes that report theirs when their member starts."""
    periods = [(event.actor, event.of("work_period_ms")) for event in events_of(history, Kind.MEMBER_STARTED)]
    return {actor: period_ms * 1000 for actor, period_ms in periods if isinstance(period_ms, int)}
