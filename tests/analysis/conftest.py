"""One store of random histories for all tests of the analysis: it takes longer to make than most of them to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stored_trials import RandomTrials, random_history, store_history

from rebalance_lab.analysis.parquet import parquet_of
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.trial_results import judged_trials, trial_results

RANDOM_TRIALS = 200


@pytest.fixture(scope="session")
def random_trials(local_spark: LocalSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RandomTrials]:
    store = tmp_path_factory.mktemp("random-trials")
    histories = {name: random_history(name, seed) for seed in range(RANDOM_TRIALS) for name in [f"t{seed:03}"]}
    for history in histories.values():
        store_history(store, history)
    with parquet_of(local_spark.session, read_store(store)) as parquet:
        results = trial_results(judged_trials(parquet.histories)).persist()
        yield RandomTrials(histories, parquet, results)
        results.unpersist()
