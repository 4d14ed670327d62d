from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from stored_trials import random_history, store_history

from rebalance_lab.analysis.datasource import read_events
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.store import trials_table
from rebalance_lab.analysis.tables.ownership_intervals import INTERVALS, ownership_intervals
from rebalance_lab.history.intervals import ownership_intervals as oracle


def test_the_table_says_what_its_oracle_says(spark: SparkSession, tmp_path: Path) -> None:
    """The oracle is `history.intervals`, which the checks stand on; the histories are wild."""
    histories = [random_history(f"t{seed:03}", seed) for seed in range(250)]
    for history in histories:
        store_history(tmp_path, history)
    expected = Counter(
        (
            history.trial.id,
            each.layer.value,
            (each.group, each.topic, each.partition, each.member),
            (each.begin_us, each.end_us),
            each.begin,
            each.end,
        )
        for history in histories
        for each in oracle(history)
    )

    events = read_events(spark, tmp_path).coalesce(4).persist()
    table = ownership_intervals(events, trials_table(spark, tuple(history.trial for history in histories)))
    assert [(field.name, field.dataType.simpleString()) for field in table.schema] == [
        (field.name, field.dataType.simpleString()) for field in INTERVALS
    ]
    found = Counter(
        (
            row["trial"],
            row["layer"],
            (row["group"], row["topic"], row["partition"], row["member"]),
            (row["begin_us"], row["end_us"]),
            (row["begin"]["actor"], row["begin"]["n"]),
            None if row["end"] is None else (row["end"]["actor"], row["end"]["n"]),
        )
        for row in rows_of(table)
    )

    events.unpersist()

    assert found == expected
    layers = Counter(key[1] for key in expected)
    assert min(layers["belief"], layers["registry"], layers["effect"]) > 300  # the comparison is not of nothing
