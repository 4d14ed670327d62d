"""The tables of a store that Spark makes: judged trials, what they show of each claim, and summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from rebalance_lab.analysis.frames import object_of, rows_of
from rebalance_lab.analysis.ledger import Ledger
from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.results import (
    Analysis,
    Episode,
    Fit,
    HerdCost,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.store import Store
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.fits import cost_fits
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.scenario_summaries import scenario_summaries
from rebalance_lab.analysis.tables.trial_results import (
    herd_costs,
    rebalance_episodes,
    trial_measures,
    trial_outcomes,
    trial_results,
)
from rebalance_lab.history.files import HistoryError

T = TypeVar("T")

FIT_ORDER = ("scenario", "world", "rules", "change", "measure", "model")
SUMMARY_ORDER = ("scenario", "world", "rules", "control", "plant", "settings", "measure")

#: A worker's HistoryError in the text of Spark's error.
_IN_WORKER = re.compile(r"HistoryError: (.+)")


def summarise(spark: SparkSession, store: Store, ledger: Ledger, *, rejudge: bool) -> tuple[Analysis, list[str]]:
    """See `summarised`. Raises HistoryError for a trial that cannot be read."""
    with spoken(), parquet_of(spark, store) as parquet:
        return summarised(parquet, ledger, rejudge=rejudge)


@contextmanager
def spoken() -> Iterator[None]:
    """Raise a worker's HistoryError instead of Spark's error around it. Use it while Spark runs, because Spark's errors
    ask the JVM for their text."""
    try:
        yield
    except PySparkException as error:
        found = _IN_WORKER.search(str(error))
        if found is None:
            raise
        raise HistoryError(found[1]) from None


def summarised(parquet: Parquet, ledger: Ledger, *, rejudge: bool = False) -> tuple[Analysis, list[str]]:
    """An Analysis without intervals and commands, and the ids of the trials that are examples of a verdict. `rejudge`:
    judge also the trials of which results are kept."""
    results = trial_results(parquet.histories, rejudge=rejudge).persist()  # several tables are made of it
    try:
        return _tables(results, parquet.store, readings_table(parquet.spark, ledger))
    finally:
        results.unpersist()


def _tables(results: DataFrame, store: Store, readings: DataFrame) -> tuple[Analysis, list[str]]:
    costs, measures = herd_costs(results), trial_measures(results)
    verdicts = sorted(
        rows_of(claim_verdicts(trial_outcomes(results), readings, costs)), key=lambda row: row["position"]
    )
    analysis = Analysis(
        verdicts=tuple(object_of(Verdict, row | {"replay": None}) for row in verdicts),
        outcomes=_sorted(TrialOutcome, trial_outcomes(results), "trial", "check"),
        intervals=(),
        trials=store.trials,
        cut_off=store.cut_off,
        measures=_sorted(TrialMeasures, measures, "trial"),
        episodes=_sorted(Episode, rebalance_episodes(results), "trial", "group", "number"),
        herd_costs=_sorted(HerdCost, costs, "trial", "group", "begin_us"),
        fits=_sorted(Fit, cost_fits(costs), *FIT_ORDER),
        summaries=_sorted(Summary, scenario_summaries(results, measures), *SUMMARY_ORDER),
    )
    return analysis, sorted({trial for row in verdicts for trial in row["examples"]})


def _sorted(kind: type[T], table: DataFrame, *columns: str) -> tuple[T, ...]:
    """The rows of a table as objects, sorted by these columns; None comes first."""
    return tuple(object_of(kind, row) for row in sorted(rows_of(table), key=partial(_key, columns)))


def _key(columns: tuple[str, ...], row: Mapping[str, Any]) -> list[tuple[bool, Any]]:
    values = [row[column] for column in columns]
    values = [[tuple(each.values()) for each in value] if isinstance(value, list) else value for value in values]
    return [(value is not None, value) for value in values]
