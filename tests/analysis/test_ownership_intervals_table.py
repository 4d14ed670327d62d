from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from stored_trials import random_history, store_history

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.parquet import parquet_of
from rebalance_lab.analysis.store import read_store
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

    with parquet_of(spark, read_store(tmp_path)) as parquet:
        table = ownership_intervals(parquet.histories)
        assert table.schema == INTERVALS
        rows = rows_of(table)
    found = Counter(
        (
            row["trial"],
            row["layer"],
            (row["group"], row["topic"], row["partition"], row["member"]),
            (row["begin_us"], row["end_us"]),
            (row["begin"]["actor"], row["begin"]["n"]),
            None if row["end"] is None else (row["end"]["actor"], row["end"]["n"]),
        )
        for row in rows
    )
    assert found == expected
    layers = Counter(key[1] for key in expected)
    assert min(layers["belief"], layers["registry"], layers["effect"]) > 300  # the comparison is not of nothing
