"""Steps that are taken from many states at once are those that are taken from one state after the other."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.explore.expansion import Expansion
from rebalance_lab.explore.model import Bounds, Partition, State
from rebalance_lab.explore.rows import Rows

BOUNDS = [
    {"records": 1, "epochs": 2},
    {"brokers": 1, "records": 2, "epochs": 2},
    {"brokers": 2, "records": 2, "epochs": 3, "power_losses": 1},
    {"brokers": 3, "records": 2, "epochs": 3, "crashes": 1, "late_fetches": True, "late_answers": True},
    {"brokers": 4, "records": 1, "epochs": 2},
]
MOST = 400


def one_by_one(partition: Partition) -> list[State]:
    """The first states in the order of a breadth-first search."""
    found = {partition.canonical(partition.start): None}
    states = list(found)
    for state in states:
        if len(states) > MOST:
            break
        for _, after in partition.steps(state):
            new = partition.canonical(after)
            if new not in found:
                found[new] = None
                states.append(new)
    return states


def at_once(partition: Partition, together: int) -> list[State]:
    expansion, looked_at = Expansion(partition), 0
    known = Rows(expansion.width)
    known.numbers(np.array([expansion.row(partition.canonical(partition.start))], np.int32))
    while looked_at < len(known) <= MOST:
        rows = known.of[looked_at : looked_at + together]
        looked_at += len(rows)
        known.numbers(expansion.steps(rows)[0])
    return [expansion.state(row) for row in known.of]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("rules", [ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_320])
def test_states_are_found_in_the_same_order_with_the_same_numbers(
    rules: ReplicationRules, bounds: dict[str, Any]
) -> None:
    states = one_by_one(Partition(rules, Bounds(**bounds)))
    for together in (9, 200):
        found = at_once(Partition(rules, Bounds(**bounds)), together)
        assert found[: len(states)] == states


@pytest.mark.parametrize("width", [2, 4, 6])
def test_rows_have_numbers_in_the_order_in_which_they_were_met(width: int) -> None:
    random, rows = Random(width), Rows(width)
    met: dict[tuple[int, ...], int] = {}
    for size in (0, 1, 50, 3000, 3000):
        some = [tuple(random.choice((-1, 0, 1, 2**31 - 1, 7)) for _ in range(width)) for _ in range(size)]
        new = [position for position, each in enumerate(some) if each not in met and some.index(each) == position]
        for each in some:
            met.setdefault(each, len(met))
        numbers, positions = rows.numbers(np.array(some, np.int32).reshape(-1, width))
        assert (numbers.tolist(), positions.tolist()) == ([met[each] for each in some], new)
    assert [tuple(each) for each in rows.of.tolist()] == list(met)
