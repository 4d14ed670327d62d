"""Breadth-first search through all states of a partition: what it finds first is a shortest counterexample."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rebalance_lab.explore.model import Partition, State, Step
from rebalance_lab.explore.properties import Property
from rebalance_lab.kernel.garbage import without_collector

#: A state takes about 120 bytes.
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
    from rebalance_lab.explore.breadth_first import BreadthFirst  # noqa: PLC0415 - it loads NumPy

    with without_collector():
        return BreadthFirst(partition, [each for each in Property if each in wanted], most_states).run(whole=whole)
