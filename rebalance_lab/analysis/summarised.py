"""The tables of a store that Spark makes: judged trials, what they show of each claim, and summaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from rebalance_lab.analysis.frames import each_row, object_of, rows_of, table
from rebalance_lab.analysis.ledger import Ledger
from rebalance_lab.analysis.parquet import scratch_of
from rebalance_lab.analysis.results import (
    Analysis,
    Episode,
    Fit,
    HerdCost,
    LeftOut,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.store import Store, history_rows
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.fits import cost_fits
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.scenario_summaries import scenario_summaries
from rebalance_lab.analysis.tables.schemas import HISTORIES
from rebalance_lab.analysis.tables.trial_results import (
    herd_costs,
    judged_trials,
    rebalance_episodes,
    trial_measures,
    trial_outcomes,
    trial_results,
    trials_left_out,
)
from rebalance_lab.analysis.workers import Row
from rebalance_lab.history.disk import is_for_want_of_space, no_space

T = TypeVar("T")

FIT_ORDER = ("scenario", "world", "rules", "change", "measure", "model")
SUMMARY_ORDER = ("scenario", "world", "rules", "control", "plant", "settings", "measure")

#: What Spark says of a worker that ended, and what the lab says of its trial.
_WORKER_ENDED = "Python worker exited unexpectedly"
WORKER_ENDED = "the process that judged it ended; it may need more memory than this machine has"


def summarise(spark: SparkSession, store: Store, ledger: Ledger, *, rejudge: bool) -> tuple[Analysis, list[str]]:
    """See `summarised`. Trials are judged where they are recorded. Raises OSError if the disk of Spark's scratch folder
    is full."""
    try:
        return summarised(spark, history_rows(store), ledger, rejudge=rejudge)
    except Exception as error:  # asked while Spark runs, because Spark's errors ask the JVM for their text
        scratch = scratch_of(spark)
        if scratch is None or not is_for_want_of_space(error, scratch):
            raise
        raise no_space(scratch) from error


def summarised(
    spark: SparkSession, places: list[Row], ledger: Ledger, *, rejudge: bool = False
) -> tuple[Analysis, list[str]]:
    """An Analysis without trials, intervals and commands, and the ids of the trials that are examples of a verdict.
    `places`: rows of HISTORIES. `rejudge`: judge also the trials of which results are kept."""
    with judged(spark, places, rejudge=rejudge) as (results, left_out):
        analysis, examples = collected(results, readings_table(spark, ledger))
    return dataclasses.replace(analysis, left_out=tuple(sorted(left_out, key=attrgetter("trial")))), examples


@contextmanager
def judged(
    spark: SparkSession, places: list[Row], *, rejudge: bool = False
) -> Iterator[tuple[DataFrame, tuple[LeftOut, ...]]]:
    """RESULTS of the trials that can be judged, and the others. `places`: rows of HISTORIES. A trial that ends the
    worker which judges it is one of the others."""

    def judge(some: list[Row]) -> DataFrame:
        return judged_trials(table(spark, some, HISTORIES), rejudge=rejudge)

    found = judge(places).persist()  # several tables are made of it
    fatal: list[str] = []
    try:
        try:
            failed = rows_of(trials_left_out(found))
        except Py4JJavaError as error:
            fatal = _fatal(judge, places, error)
            found.unpersist()
            found = judge([row for row in places if row["trial"] not in fatal]).persist()
            failed = rows_of(trials_left_out(found))
        left_out = [LeftOut(**row) for row in failed] + [LeftOut(trial, WORKER_ENDED) for trial in fatal]
        yield trial_results(found), tuple(left_out)
    finally:
        found.unpersist()


def _fatal(judge: Callable[[list[Row]], DataFrame], places: list[Row], error: Py4JJavaError) -> list[str]:
    """The trials that end the worker which judges them: each half is tried until they are alone. Raises `error` if it
    is another one."""
    if _WORKER_ENDED not in str(error):
        raise error
    if len(places) == 1:
        return [places[0]["trial"]]
    middle = len(places) // 2
    fatal = []
    for half in (places[:middle], places[middle:]):
        try:
            rows_of(trials_left_out(judge(half)))
        except Py4JJavaError as again:
            fatal += _fatal(judge, half, again)
    return fatal


def store_tables(results: DataFrame, readings: DataFrame) -> dict[str, DataFrame]:
    """RESULTS and READINGS to every table that is made of judged trials, by the names of `results.Analysis`. What the
    commands show and what they publish are these."""
    costs, measures = herd_costs(results), trial_measures(results)
    return {
        "verdicts": claim_verdicts(results, readings, costs),
        "outcomes": trial_outcomes(results),
        "measures": measures,
        "episodes": rebalance_episodes(results),
        "herd_costs": costs,
        "fits": cost_fits(costs),
        "summaries": scenario_summaries(results, measures),
    }


def collected(results: DataFrame, readings: DataFrame) -> tuple[Analysis, list[str]]:
    """RESULTS and READINGS to an Analysis without trials, intervals and commands, and the ids of the trials that are
    examples of a verdict."""
    tables = store_tables(results, readings)
    verdicts = sorted(rows_of(tables["verdicts"]), key=lambda row: row["position"])
    analysis = Analysis(
        verdicts=tuple(object_of(Verdict, row | {"replay": None}) for row in verdicts),
        outcomes=_sorted(TrialOutcome, tables["outcomes"], "trial", "check"),
        intervals=(),
        trials=(),
        measures=_sorted(TrialMeasures, tables["measures"], "trial"),
        episodes=_sorted(Episode, tables["episodes"], "trial", "group", "number"),
        herd_costs=_sorted(HerdCost, tables["herd_costs"], "trial", "group", "begin_us"),
        fits=_sorted(Fit, tables["fits"], *FIT_ORDER),
        summaries=_sorted(Summary, tables["summaries"], *SUMMARY_ORDER),
    )
    return analysis, sorted({trial for row in verdicts for trial in row["examples"]})


def _sorted(kind: type[T], table: DataFrame, *columns: str) -> tuple[T, ...]:
    """The rows of a table as objects, sorted by these columns; None comes first."""
    return tuple(sorted((object_of(kind, row) for row in each_row(table)), key=partial(_key, columns)))


def _key(columns: tuple[str, ...], row: object) -> list[tuple[bool, Any]]:
    values = [getattr(row, column) for column in columns]
    return [(value is not None, value) for value in values]
