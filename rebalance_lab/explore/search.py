"""Breadth-first search through all states of a partition: what it finds first is a shortest counterexample."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from rebalance_lab.explore.model import Partition, State, Step, Values
from rebalance_lab.explore.properties import CHECKS, Property

#: A state takes about 250 bytes.
MOST_STATES = 10_000_000


class Ending(StrEnum):
    """- EXHAUSTED: there are no more states.
    - FOUND: every property that was asked for is violated.
    - LIMIT: there are more states than were allowed.
    """

    EXHAUSTED = "exhausted"
    FOUND = "found"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A shortest schedule to a state without the property. `steps`: each with the state after it. `states`: how many
    had been met until then."""

    start: State
    steps: tuple[tuple[Step, State], ...]
    states: int


@dataclass(frozen=True, slots=True)
class Exploration:
    """`states`: different ones, apart from names of brokers. `transitions`: steps from them. `depth`: of the longest
    of the shortest schedules to them."""

    states: int
    transitions: int
    depth: int
    ending: Ending
    counterexamples: Mapping[Property, Counterexample]


def explore(
    partition: Partition, wanted: Collection[Property], *, whole: bool = False, most_states: int = MOST_STATES
) -> Exploration:
    """Search until each of the properties `wanted` is violated, or nothing is left. `whole`: until nothing is left."""
    with _without_collector():
        return _Search(partition, wanted, most_states).run(whole=whole)


@contextmanager
def _without_collector() -> Iterator[None]:
    """The search makes millions of tuples and no cycles; looking for some takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Search:
    def __init__(self, partition: Partition, wanted: Collection[Property], most_states: int) -> None:
        self._partition = partition
        self._open = [each for each in Property if each in wanted]
        self._most_states = most_states
        self._judge = _Judge(partition, self._open)
        self._parents: dict[State, State | None] = {}
        self._transitions = 0
        self._found: dict[Property, Counterexample] = {}

    def run(self, *, whole: bool) -> Exploration:
        start = self._partition.canonical(self._partition.start)
        self._parents[start] = None
        level, depth = [start], 0
        self._look_at(start)
        while True:
            following = self._next(level, stops=not whole)
            if not whole and not self._open:
                return self._ended(Ending.FOUND, depth + bool(following))
            if len(self._parents) >= self._most_states:
                return self._ended(Ending.LIMIT, depth)
            if not following:
                return self._ended(Ending.EXHAUSTED, depth)
            level, depth = following, depth + 1

    def _next(self, level: list[State], *, stops: bool) -> list[State]:
        """All new states one step further; not all, if the search ends there."""
        parents, steps, canonical = self._parents, self._partition.steps, self._partition.canonical
        following: list[State] = []
        for state in level:
            after = steps(state)
            self._transitions += len(after)
            for _, reached in after:
                new = canonical(reached)
                if new not in parents:
                    parents[new] = state
                    following.append(new)
                    self._look_at(new)
            if len(parents) >= self._most_states or (stops and not self._open):
                break
        return following

    def _look_at(self, state: State) -> None:
        for each in self._judge.broken(state):
            if each in self._open:
                self._open.remove(each)
                self._found[each] = self._counterexample(state)

    def _counterexample(self, state: State) -> Counterexample:
        path = [state]
        while (parent := self._parents[path[-1]]) is not None:
            path.append(parent)
        now = start = self._partition.start
        steps = []
        for wanted in reversed(path[:-1]):
            found = next(each for each in self._partition.steps(now) if self._partition.canonical(each[1]) == wanted)
            steps.append(found)
            now = found[1]
        return Counterexample(start, tuple(steps), len(self._parents))

    def _ended(self, ending: Ending, depth: int) -> Exploration:
        return Exploration(len(self._parents), self._transitions, depth, ending, self._found)


class _Judge:
    """Which properties a state does not have. What they depend on is the same in many states."""

    def __init__(self, partition: Partition, wanted: Collection[Property]) -> None:
        self._partition = partition
        self._wanted = tuple(wanted)
        self._views: Values[tuple[object, ...]] = Values()
        self._replica_views: dict[int, int] = {}
        self._control_views: dict[int, int] = {}
        self._verdicts: dict[State, tuple[Property, ...]] = {}

    def broken(self, state: State) -> tuple[Property, ...]:
        known = self._replica_views
        try:
            key = (*[known[each] for each in state[:-1]], self._control_views[state[-1]])
        except KeyError:
            self._see(state)
            return self.broken(state)
        verdict = self._verdicts.get(key)
        if verdict is None:
            replicas, control = self._partition.values(state)
            verdict = tuple(each for each in self._wanted if not CHECKS[each](replicas, control))
            self._verdicts[key] = verdict
        return verdict

    def _see(self, state: State) -> None:
        replicas, control = self._partition.values(state)
        for number, each in zip(state, replicas, strict=False):
            view = (each.log, each.high_watermark, each.role, None if each.led is None else each.led.isr)
            self._replica_views[number] = self._views.number(view)
        self._control_views[state[-1]] = self._views.number((control.isr, control.committed))
