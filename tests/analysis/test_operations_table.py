from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyspark.testing import assertSchemaEqual
from stored_trials import RandomTrials

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.operations import OPERATIONS, operations
from rebalance_lab.checks.operations import requests
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History

#: (phase, its number, actor, operation) -> requests, reads, writes
Counted = dict[tuple[str, int, str, str], tuple[int, int, int]]


def oracle(history: History) -> Counted:
    """An event is counted in the last phase that began before it, in the order of the history."""
    found: Counter[tuple[tuple[str, int, str, str], str]] = Counter()
    phase, number = "", 0
    for event in history.events:
        if event.kind is Kind.PHASE:
            phase, number = str(event.of("name")), number + 1
        for operation, count, one in single(event):
            reads, writes = requests(one)
            for what, amount in (("requests", count), ("reads", reads), ("writes", writes)):
                found[(phase, number, event.actor, operation), what] += amount
    return {key: (found[key, "requests"], found[key, "reads"], found[key, "writes"]) for key, _ in found}


def single(event: Event) -> list[tuple[str, int, Event]]:
    """Each operation of an event, how often it was sent, and an event of it alone."""
    if event.kind is Kind.INVOKED:
        return [(str(event.of("op")), 1, event)]
    counts = event.of("counts")
    if event.kind is not Kind.OPERATIONS or not isinstance(counts, Mapping):
        return []
    of = {name: {name: n} for name, n in counts.items() if name != "reads"}
    if "multi_read" in of:
        of["multi_read"]["reads"] = counts["reads"]
    told = [
        (name, Event(event.actor, event.n, 0, event.layer, event.kind, detail={"counts": own}))
        for name, own in of.items()
    ]
    return [(name, counts[name], one) for name, one in told]


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    table = operations(random_trials.parquet.events)
    assertSchemaEqual(table.schema, OPERATIONS, ignoreNullable=True)
    found: dict[str, Counted] = {name: {} for name in random_trials.histories}
    for row in rows_of(table):
        key = (row["phase"], row["phase_number"], row["actor"], row["operation"])
        assert key not in found[row["trial"]]
        found[row["trial"]][key] = (row["requests"], row["reads"], row["writes"])
    expected = {name: oracle(history) for name, history in random_trials.histories.items()}
    assert found == expected
    seen = {key[3] for counted in expected.values() for key in counted}
    assert seen >= {"get", "multi_read", "create", "multi", "close"}
    assert {key[0] for counted in expected.values() for key in counted} >= {"", "changing", "closing"}
