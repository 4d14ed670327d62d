"""The steps of a `Partition`, from many states at once.

States are rows of an array. What a step makes of the numbers in a row is looked up in tables, and computed by the
partition when it is first needed. Numbers of values decide between states that differ in names of brokers only, and so
which of several schedules is found. So they must be given in the order of the states: states from which a step leads to
a new value are left to the partition, one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rebalance_lab.explore.model import NO_EFFECT, Partition, State, Unmet
from rebalance_lab.explore.rows import Grown, Numbers, Positions, Rows

#: What a table has for a value that has no number yet.
_UNMET = -1


class Expansion:
    """`width`: of a row. After the numbers of a state it has a 0, if their number is odd."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        brokers = self._brokers = len(partition.brokers)
        self.width = brokers + 1 + (brokers + 1) % 2
        #: Of each kind of steps, in the order of `Partition.steps`: the two columns that they depend on and change.
        self._columns = np.array(
            [*((brokers, me) for me in partition.brokers), *partition.pairs, (brokers, brokers)], np.intp
        )
        self._changes = _Changes(partition)
        self._affected = _Table(partition.affected)
        self._exposed = _Table(partition.exposed)
        self._pruned = _Table(partition.pruned)
        self._shapes = _Mirror(partition.shapes)
        self._heard = _Mirror(partition.heard)
        self._names = [(list(each.old), _Names(each.replica), _Names(each.control)) for each in partition.symmetries]

    def row(self, state: State) -> list[int]:
        return [*state, *[0] * (self.width - len(state))]

    def state(self, row: Numbers) -> State:
        return tuple(row[: self._brokers + 1].tolist())

    def steps(self, rows: Numbers) -> tuple[Numbers, Positions]:
        """Where all steps from these states lead, by canonical names, in the order of the states and of
        `Partition.steps`; and of each step, the position of the state that it is from."""
        with self._partition.closed():
            after, origins, unmet = self._at_once(rows)
        if not unmet.any():
            return after, origins
        alone = {origin: self._one_by_one(rows[origin]) for origin in np.flatnonzero(unmet)}
        more = [row for found in alone.values() for row in found]
        after = np.concatenate((after, np.array(more, np.int32).reshape(-1, self.width)))
        origins = np.concatenate((origins, np.repeat(list(alone), [len(each) for each in alone.values()])))
        order = np.argsort(origins, kind="stable")
        return after[order], origins[order]

    def _one_by_one(self, row: Numbers) -> list[list[int]]:
        canonical = self._partition.canonical
        return [self.row(canonical(after)) for _, after in self._partition.steps(self.state(row))]

    def _at_once(self, rows: Numbers) -> tuple[Numbers, Positions, NDArray[np.bool_]]:
        """As `steps`, without the states from which a step leads to a new value; and which these are."""
        lists = self._changes.of(rows[:, self._columns])
        unmet = (lists == _UNMET).any(axis=1)
        kept = np.flatnonzero(~unmet)
        cells, first, second = self._changes.spread(lists[kept].ravel())
        places, kinds = np.divmod(cells, len(self._columns))
        origins = kept[places]
        after, every = rows[origins], np.arange(len(origins))
        after[every, self._columns[kinds, 1]] = second
        others = np.flatnonzero(kinds >= self._brokers)
        after[others, self._columns[kinds[others], 0]] = first[others]
        self._conclude(after, kinds, first, second)
        unmet[origins[after[:, self._brokers] == _UNMET]] = True
        met = ~unmet[origins]
        after, origins = self._canonical(after[met]), origins[met]
        unmet[origins[after[:, self._brokers] == _UNMET]] = True
        met = ~unmet[origins]
        return after[met], origins[met], unmet

    def _conclude(self, after: Numbers, kinds: Positions, first: Numbers, second: Numbers) -> None:
        """What the steps of brokers make of the controller."""
        alone = kinds < self._brokers
        self._apply(self._affected, after, np.flatnonzero(alone & (first != NO_EFFECT)), first)
        of_brokers = np.flatnonzero(kinds < len(self._columns) - 1)
        self._apply(self._exposed, after, of_brokers, np.where(alone, second, first))
        heard = np.minimum.reduce([self._heard.of[after[:, each]] for each in range(self._brokers)])
        self._apply(self._pruned, after, np.flatnonzero(alone), heard)

    def _apply(self, table: _Table, rows: Numbers, at: Positions, others: Numbers) -> None:
        controls = rows[:, self._brokers]
        controls[at] = table.of(np.stack((controls[at], others[at]), axis=1))

    def _canonical(self, rows: Numbers) -> Numbers:
        """As `Partition.canonical`. A row with a new value has _UNMET everywhere."""
        shapes = self._shapes.of[rows[:, : self._brokers]]
        least, open_ = np.empty_like(rows), np.ones(len(rows), np.bool_)
        for old, replicas, controls in self._names:
            sorts = np.ones(len(rows), np.bool_)
            for one, other in pairwise(old):
                sorts &= shapes[:, one] <= shapes[:, other]
            at = np.flatnonzero(sorts)
            named = np.zeros((len(at), self.width), np.int32)
            named[:, : self._brokers] = replicas.of(rows[at][:, old])
            named[:, self._brokers] = controls.of(rows[at, self._brokers])
            named[(named == _UNMET).any(axis=1)] = _UNMET
            better = open_[at]
            tied = np.flatnonzero(~better)
            better[tied] = _less(named[tied], least[at[tied]])
            least[at[better]] = named[better]
            open_[at] = False
        return least


def _less(rows: Numbers, others: Numbers) -> NDArray[np.bool_]:
    """Which rows come before the others, as tuples would."""
    less, equal = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    for column in range(rows.shape[1]):
        less |= equal & (rows[:, column] < others[:, column])
        equal &= rows[:, column] == others[:, column]
    return less


class _Changes:
    """What each kind of steps makes of the two numbers that it depends on: lists of such pairs."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._makers: list[Callable[[int, int], list[tuple[int, int]]]] = [
            *(self._alone(me) for me in partition.brokers),
            *(self._asked(*pair) for pair in partition.pairs),
            lambda control, _: [(after, after) for _, after in partition.ordered(control)],
        ]
        self._views = _Mirror(partition.views)
        self._leads, self._addressees = _Mirror(partition.leads), _Mirror(partition.addressees)
        self._leaders = np.array([leader for leader, _ in partition.pairs], np.int32)
        self._table = _Table(self._list)
        self._numbers, self._ends = array("i"), array("i", [0, 0])  # the first is the empty list
        self._mirrors = _Mirror(self._numbers), _Mirror(self._ends)

    def of(self, pairs: Numbers) -> Numbers:
        """Of pairs in an array of states and kinds: the numbers of their lists."""
        kinds, brokers = len(self._makers), len(self._partition.brokers)
        alone, asked = slice(brokers), slice(brokers, kinds - 1)
        keys = np.ascontiguousarray(pairs)
        keys[:, alone, 0] = self._views.of[keys[:, alone, 0]]
        wanted = np.ones(keys.shape[:2], np.bool_)
        wanted[:, asked] = self._leads.of[keys[:, asked, 0]] & (self._addressees.of[keys[:, asked, 1]] >> self._leaders)
        keys[:, :, 0] *= kinds
        keys[:, :, 0] += np.arange(kinds, dtype=np.int32)
        lists = np.zeros(wanted.shape, np.int32)
        lists[wanted] = self._table.of(keys[wanted])
        return lists

    def spread(self, lists: Numbers) -> tuple[Positions, Numbers, Numbers]:
        """All elements of these lists in turn: the position of its list, and the pair."""
        numbers, ends = (each.of for each in self._mirrors)
        begins = ends[lists]
        counts = (ends[lists + 1] - begins) // 2
        cells = np.repeat(np.arange(len(lists)), counts)
        passed = np.cumsum(counts) - counts
        found = numbers.reshape(-1, 2)[np.arange(len(cells)) + (begins // 2 - passed)[cells]]
        return cells, found[:, 0], found[:, 1]

    def _list(self, first: int, second: int) -> int:
        number, kind = divmod(first, len(self._makers))
        pairs = self._makers[kind](number, second)
        if not pairs:
            return 0
        for each in pairs:
            self._numbers.extend(each)
        self._ends.append(len(self._numbers))
        return len(self._ends) - 2

    def _alone(self, me: int) -> Callable[[int, int], list[tuple[int, int]]]:
        alone = self._partition.alone
        return lambda view, replica: [(effect, after) for _, after, effect in alone(view, me, replica)]

    def _asked(self, me: int, you: int) -> Callable[[int, int], list[tuple[int, int]]]:
        asked = self._partition.asked
        return lambda leader, follower: [found[1:] for found in asked(me, leader, you, follower)]


class _Table:
    """What a function makes of two numbers, of many such pairs at once. The function may raise Unmet; then it is called
    again the next time."""

    def __init__(self, function: Callable[[int, int], int]) -> None:
        self._function = function
        self._keys = Rows(2)
        self._values = Grown()

    def of(self, keys: Numbers) -> Numbers:
        numbers, new = self._keys.numbers(keys)
        self._values.extend(np.full(len(new), _UNMET))
        values = self._values.of
        unknown = np.unique(numbers[values[numbers] == _UNMET])
        _fill(values, unknown, self._function, self._keys.of[unknown].tolist())
        found: Numbers = values[numbers]
        return found


class _Names:
    """What a function makes of one number, as `_Table`."""

    def __init__(self, function: Callable[[int], int]) -> None:
        self._function = function
        self._values = Grown()

    def of(self, numbers: Numbers) -> Numbers:
        self._values.extend(np.full(max(0, numbers.max(initial=-1) + 1 - len(self._values)), _UNMET))
        values = self._values.of
        unknown = np.unique(numbers[values[numbers] == _UNMET])
        _fill(values, unknown, self._function, unknown[:, None].tolist())
        found: Numbers = values[numbers]
        return found


def _fill(
    values: Numbers, positions: Positions | Numbers, function: Callable[..., int], arguments: Sequence[list[int]]
) -> None:
    for position, each in zip(positions, arguments, strict=True):
        if each[0] != _UNMET:
            with suppress(Unmet):
                values[position] = function(*each)


class _Mirror:
    """A growing list of small numbers as an array."""

    def __init__(self, source: Sequence[int]) -> None:
        self._source = source
        self._copy = Grown()

    @property
    def of(self) -> Numbers:
        self._copy.extend(self._source[len(self._copy) :])
        return self._copy.of
