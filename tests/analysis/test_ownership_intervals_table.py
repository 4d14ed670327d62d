from __future__ import annotations

from collections import Counter

from pyspark.testing import assertSchemaEqual
from stored_trials import RandomTrials

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.intervals import INTERVALS, ownership_intervals, trial_ends
from rebalance_lab.history.intervals import ownership_intervals as oracle


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    """The oracle is `history.intervals`, which the checks stand on; the histories are wild."""
    expected = Counter(
        (name, each.layer.value, each.place, each.member, each.begin_us, each.end_us, each.begin, each.end)
        for name, history in random_trials.histories.items()
        for each in oracle(history)
    )
    parquet = random_trials.parquet
    table = ownership_intervals(parquet.events, parquet.histories, trial_ends(parquet.events))
    assertSchemaEqual(table.schema, INTERVALS, ignoreNullable=True)
    found = Counter(
        (
            row["trial"],
            row["layer"],
            (row["group"], row["topic"], row["partition"]),
            *(row["member"], row["begin_us"], row["end_us"]),
            (row["begin"]["actor"], row["begin"]["n"]),
            None if row["end"] is None else (row["end"]["actor"], row["end"]["n"]),
        )
        for row in rows_of(table)
    )
    for layer in ("registry", "belief", "effect"):
        of_layer = [Counter({key: n for key, n in each.items() if key[1] == layer}) for each in (found, expected)]
        assert of_layer[0] == of_layer[1], layer
    assert found == expected
    layers = Counter(key[1] for key in expected)
    assert min(layers["belief"], layers["registry"], layers["effect"]) > 200  # the comparison is not of nothing
