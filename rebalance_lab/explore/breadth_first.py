"""The search itself. It holds each state as a row of an array, and takes the steps of thousands of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rebalance_lab.explore.expansion import Expansion
from rebalance_lab.explore.model import Partition, Values
from rebalance_lab.explore.properties import CHECKS, Property
from rebalance_lab.explore.rows import Grown, Numbers, Positions, Rows
from rebalance_lab.explore.search import Counterexample, Ending, Exploration

#: How many states are looked at together.
_TOGETHER = 1 << 12

#: Of states and properties: whether the state lacks the property.
Broken = NDArray[np.bool_]

#: The parent of the first state.
_NONE = -1


class BreadthFirst:
    """States have numbers in the order in which they were found."""

    def __init__(self, partition: Partition, wanted: Sequence[Property], most_states: int) -> None:
        self._partition = partition
        self._open = list(wanted)
        self._most_states = most_states
        self._expansion = Expansion(partition)
        self._judge = _Judge(partition, wanted, self._expansion.width)
        self._states = Rows(self._expansion.width)
        self._parents = Grown()
        self._met = 0
        self._transitions = 0
        self._found: dict[Property, Counterexample] = {}

    def run(self, *, whole: bool) -> Exploration:
        start = self._partition.canonical(self._partition.start)
        self._states.numbers(np.array([self._expansion.row(start)], np.int32))
        self._parents.extend([_NONE])
        self._look_at(self._judge.broken(self._states.of))
        begin, depth = 0, 0
        while True:
            end = self._met
            self._look_from(begin, end, stops=not whole)
            if not whole and not self._open:
                return self._ended(Ending.FOUND, depth + (self._met > end))
            if self._met >= self._most_states:
                return self._ended(Ending.LIMIT, depth)
            if self._met == end:
                return self._ended(Ending.EXHAUSTED, depth)
            begin, depth = end, depth + 1

    def _look_from(self, begin: int, end: int, *, stops: bool) -> None:
        """At all new states one step further than these; not all, if the search ends there."""
        for first in range(begin, end, _TOGETHER):
            after, origins = self._expansion.steps(self._states.of[first : min(first + _TOGETHER, end)])
            new = self._states.numbers(after)[1]
            parents = first + origins[new]
            self._parents.extend(parents)
            broken = self._judge.broken(self._states.of[self._met :])
            last = self._last(first, parents, broken, stops=stops)
            if last is not None:
                origins = origins[: np.searchsorted(origins, last - first, side="right")]
                broken = broken[: np.searchsorted(parents, last, side="right")]
            self._transitions += len(origins)
            self._look_at(broken)
            if last is not None:
                return

    def _last(self, first: int, parents: Positions, broken: Broken, *, stops: bool) -> int | None:
        """The state after whose steps the search ends, if it does. `first`: of those whose steps were taken.
        `parents`, `broken`: of the new states."""
        ends = []
        missing = self._most_states - self._met
        if missing <= len(parents):
            ends.append(first if missing <= 0 else int(parents[missing - 1]))
        if stops:
            found = [np.flatnonzero(broken[:, self._judge.wanted.index(each)]) for each in self._open]
            if all(map(len, found)):
                ends.append(max((int(parents[each[0]]) for each in found), default=first))
        return min(ends, default=None)

    def _look_at(self, broken: Broken) -> None:
        """At the next states. `broken`: which properties each does not have."""
        if broken.any():
            for position, which in np.argwhere(broken):
                each = self._judge.wanted[which]
                if each in self._open:
                    self._open.remove(each)
                    self._found[each] = self._counterexample(self._met + int(position))
        self._met += len(broken)

    def _counterexample(self, number: int) -> Counterexample:
        path = [number]
        while (parent := int(self._parents.of[path[-1]])) != _NONE:
            path.append(parent)
        canonical = self._partition.canonical
        now = start = self._partition.start
        steps = []
        for each in reversed(path[:-1]):
            wanted = self._expansion.state(self._states.of[each])
            found = next(step for step in self._partition.steps(now) if canonical(step[1]) == wanted)
            steps.append(found)
            now = found[1]
        return Counterexample(start, tuple(steps), number + 1)

    def _ended(self, ending: Ending, depth: int) -> Exploration:
        return Exploration(self._met, self._transitions, depth, ending, self._found)


class _Judge:
    """Which properties states do not have. What they depend on is the same in many states."""

    def __init__(self, partition: Partition, wanted: Sequence[Property], width: int) -> None:
        self.wanted = tuple(wanted)
        self._partition = partition
        self._views: Values[tuple[object, ...]] = Values()
        self._replica_views, self._control_views = Grown(), Grown()
        self._seen = Rows(width)
        self._verdicts = Grown(len(self.wanted), np.bool_)

    def broken(self, rows: Numbers) -> Broken:
        """Of each row, and of each property that is wanted."""
        self._see()
        brokers = len(self._partition.brokers)
        views = np.zeros_like(rows)
        views[:, :brokers] = self._replica_views.of[rows[:, :brokers]]
        views[:, brokers] = self._control_views.of[rows[:, brokers]]
        numbers, new = self._seen.numbers(views)
        self._verdicts.extend([self._judged(each) for each in rows[new, : brokers + 1].tolist()])
        found: Broken = self._verdicts.of[numbers]
        return found

    def _judged(self, state: list[int]) -> list[bool]:
        replicas, control = self._partition.values(tuple(state))
        return [not CHECKS[each](replicas, control) for each in self.wanted]

    def _see(self) -> None:
        """The values that are new."""
        number = self._views.number
        self._replica_views.extend(
            [
                number((each.log, each.high_watermark, each.role, None if each.led is None else each.led.isr))
                for each in self._partition.replicas.of[len(self._replica_views) :]
            ]
        )
        self._control_views.extend(
            [number((each.isr, each.committed)) for each in self._partition.controls.of[len(self._control_views) :]]
        )
