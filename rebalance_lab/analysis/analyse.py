"""Everything that a report shows of a store of trials, computed in one Spark session."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name

from rebalance_lab.analysis import session
from rebalance_lab.analysis.frames import object_of, rows_of
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.results import (
    Analysis,
    Episode,
    Fit,
    HerdCost,
    Interval,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.store import Store, read_store
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.fits import cost_fits
from rebalance_lab.analysis.tables.readings import reading_rows, readings_table
from rebalance_lab.analysis.tables.scenario_summaries import scenario_summaries
from rebalance_lab.analysis.tables.trial_results import (
    herd_costs,
    ownership_intervals,
    rebalance_episodes,
    trial_measures,
    trial_outcomes,
    trial_results,
)
from rebalance_lab.analysis.verdicts import verdict_row
from rebalance_lab.history.files import HistoryError, replay_command

T = TypeVar("T")

FIT_ORDER = ("scenario", "world", "rules", "change", "measure", "model")
SUMMARY_ORDER = ("scenario", "world", "rules", "control", "plant", "settings", "measure")

#: Ids of trials, or a function that chooses them from an analysis (which has no intervals yet).
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]

#: A worker's HistoryError in the text of Spark's error.
_IN_WORKER = re.compile(r"HistoryError: (.+)")


def analyse(
    store: Path,
    *,
    intervals_for: Wanted | None = None,
    ledger: Ledger | None = None,
    spark: SparkSession | None = None,
) -> Analysis:
    """Judge every trial of a store and every claim of the ledger.

    `intervals_for`: the ids of the trials whose ownership intervals are wanted, or a function that chooses them; by
    default the trials that decide a claim and their controls, one of each in each world. `spark`: the session to work
    in; by default one is started, and stopped at the end. The store keeps the trials' events as Parquet
    (`analysis.parquet`).

    Raises HistoryError (the message names the trial) for a store or trial that cannot be read, and for a trial in
    `intervals_for` that does not exist; SparkStartError, LedgerError.
    """
    found = read_store(store)
    claims = ledger or read_ledger()
    if intervals_for is not None and not callable(intervals_for):
        _must_be_there(found, intervals_for)
    if not found.trials:
        return _untested(found, claims)  # without Spark, which takes seconds to start
    if spark is not None:
        with spoken():
            return _analyse(spark, found, claims, intervals_for)
    with session.start() as local, spoken():
        return _analyse(local.session, found, claims, intervals_for)


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


def _analyse(spark: SparkSession, store: Store, ledger: Ledger, intervals_for: Wanted | None) -> Analysis:
    with parquet_of(spark, store) as parquet:
        analysis, examples = summarised(parquet, ledger)
        wanted = intervals_for(analysis) if callable(intervals_for) else intervals_for
        chosen = examples if wanted is None else sorted(set(wanted))
        return dataclasses.replace(analysis, intervals=_intervals(parquet, chosen))


def summarised(parquet: Parquet, ledger: Ledger) -> tuple[Analysis, list[str]]:
    """An Analysis without intervals, and the ids of the trials that are examples of a verdict."""
    results = trial_results(parquet.histories).persist()  # several tables are made of it
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
        verdicts=tuple(_verdict(row, store) for row in verdicts),
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


def _verdict(row: Mapping[str, Any], store: Store) -> Verdict:
    witness = row["witness"]
    return object_of(Verdict, {**row, "replay": None if witness is None else replay_command(store.folders[witness])})


def _untested(store: Store, ledger: Ledger) -> Analysis:
    """The analysis of a store without trials."""
    readings = [verdict_row(row | {"roles": None, "fits": None}) for row in reading_rows(ledger)]
    return Analysis(
        verdicts=tuple(_verdict(row, store) for row in readings),
        outcomes=(),
        intervals=(),
        trials=(),
        cut_off=store.cut_off,
    )


def _must_be_there(store: Store, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in store.folders]
    if missing:
        raise HistoryError(f"{store.path} holds no trial {missing[0]!r}, or one that was cut off")


def _intervals(parquet: Parquet, wanted: Sequence[str]) -> tuple[Interval, ...]:
    _must_be_there(parquet.store, wanted)
    if not wanted:
        return ()
    found = ownership_intervals(parquet.histories.where(F.col("trial").isin(*wanted)))
    return _sorted(Interval, found, "trial", "layer", "topic", "partition", "begin_us", "member")
