from __future__ import annotations

from collections import Counter

from stored_trials import RandomTrials

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.trial_results import INTERVALS, ownership_intervals
from rebalance_lab.history.intervals import ownership_intervals as oracle


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    """The oracle is `history.intervals`, which the checks stand on; the histories are wild."""
    expected = Counter(
        (name, each.layer.value, each.place, each.member, each.begin_us, each.end_us, each.begin, each.end)
        for name, history in random_trials.histories.items()
        for each in oracle(history)
    )
    table = ownership_intervals(random_trials.parquet.histories)
    assert table.schema == INTERVALS
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
    assert found == expected
    layers = Counter(key[1] for key in expected)
    assert min(layers["belief"], layers["registry"], layers["effect"]) > 200  # the comparison is not of nothing
