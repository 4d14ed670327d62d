"""From a store of trials to all that a report shows, in one Spark."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from rebalance_lab.analysis import rows, session
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.results import Analysis, Interval
from rebalance_lab.analysis.store import Store, read_store
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.cost_fits import cost_fits
from rebalance_lab.analysis.tables.herd_costs import herd_costs
from rebalance_lab.analysis.tables.ownership_intervals import ownership_intervals
from rebalance_lab.analysis.tables.readings import reading_rows, readings_table
from rebalance_lab.analysis.tables.rebalance_episodes import rebalance_episodes
from rebalance_lab.analysis.tables.scenario_summaries import scenario_summaries
from rebalance_lab.analysis.tables.trial_measures import trial_measures
from rebalance_lab.analysis.tables.trial_outcomes import trial_outcomes
from rebalance_lab.analysis.tables.trial_results import trial_results
from rebalance_lab.analysis.verdicts import verdict_row
from rebalance_lab.history.files import HistoryError

#: Trials by id, or a choice among those of an analysis (which has no intervals yet).
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]

#: How a worker's HistoryError looks once Spark has wrapped it.
_IN_WORKER = re.compile(r"HistoryError: (.+)")


def analyse(
    store: Path,
    *,
    intervals_for: Wanted | None = None,
    ledger: Ledger | None = None,
    spark: SparkSession | None = None,
) -> Analysis:
    """Judge every trial of a store and every claim of the ledger.

    `intervals_for`: ids of the trials whose ownership intervals are wanted, or a function that
    chooses them; where left out, the trials that decide a claim and their controls, one of each
    in each world. `spark`: a session to work in; one is started, and stopped again, where it is
    left out. The store keeps the trials' events as Parquet (`analysis.parquet`).

    Raises HistoryError (the message names the trial) for a store or trial that cannot be read
    and for a trial in `intervals_for` that is not there; SparkStartError, LedgerError.
    """
    found = read_store(store)
    claims = ledger or read_ledger()
    if intervals_for is not None and not callable(intervals_for):
        _must_be_there(found, intervals_for)
    if not found.trials:
        return _untested(found, claims)  # without Spark: nobody should wait for it to say so
    if spark is not None:
        with spoken():
            return _analyse(spark, found, claims, intervals_for)
    with session.start() as local, spoken():
        return _analyse(local.session, found, claims, intervals_for)


@contextmanager
def spoken() -> Iterator[None]:
    """Take a worker's HistoryError out of Spark's wrapping; while Spark runs, because its errors
    ask the JVM for their text."""
    try:
        yield
    except PySparkException as error:
        told = _IN_WORKER.search(str(error))
        if told is None:
            raise
        raise HistoryError(told[1]) from None


def _analyse(spark: SparkSession, store: Store, ledger: Ledger, intervals_for: Wanted | None) -> Analysis:
    with parquet_of(spark, store) as parquet:
        analysis, examples = summarised(parquet, ledger)
        wanted = intervals_for(analysis) if callable(intervals_for) else intervals_for
        chosen = examples if wanted is None else sorted(set(wanted))
        return dataclasses.replace(analysis, intervals=_intervals(parquet, chosen))


def summarised(parquet: Parquet, ledger: Ledger) -> tuple[Analysis, list[str]]:
    """All of an Analysis but the intervals, and the ids of the trials that are examples of a verdict."""
    results = trial_results(parquet.histories).persist()  # many tables look at it
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
        verdicts=tuple(rows.verdict(row, store) for row in verdicts),
        outcomes=rows.sorted_rows(rows.outcome, rows_of(trial_outcomes(results)), "trial", "check"),
        intervals=(),
        trials=store.trials,
        cut_off=store.cut_off,
        measures=rows.sorted_rows(rows.measures, rows_of(measures), "trial"),
        episodes=rows.sorted_rows(rows.episode, rows_of(rebalance_episodes(results)), "trial", "group", "number"),
        herd_costs=rows.sorted_rows(rows.herd_cost, rows_of(costs), "trial", "group", "begin_us"),
        fits=rows.sorted_rows(rows.fit, rows_of(cost_fits(costs)), *rows.FIT_ORDER),
        summaries=rows.sorted_rows(rows.summary, rows_of(scenario_summaries(results, measures)), *rows.SUMMARY_ORDER),
    )
    return analysis, sorted({trial for row in verdicts for trial in row["examples"]})


def _untested(store: Store, ledger: Ledger) -> Analysis:
    """What a store without trials says of the ledger."""
    readings = [verdict_row(row | {"roles": None, "fits": None}) for row in reading_rows(ledger)]
    return Analysis(
        verdicts=tuple(rows.verdict(row, store) for row in readings),
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
    found = rows_of(ownership_intervals(parquet.histories.where(F.col("trial").isin(*wanted))))
    return rows.sorted_rows(rows.interval, found, "trial", "layer", "topic", "partition", "begin_us", "member")
