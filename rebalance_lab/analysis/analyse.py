"""From a store of trials to all that a report shows, in one Spark."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rebalance_lab.analysis import session
from rebalance_lab.analysis.datasource import read_events, read_histories
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.results import Analysis, Interval, TrialOutcome, Verdict
from rebalance_lab.analysis.store import Store, read_store, trials_table
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts, readings_table
from rebalance_lab.analysis.tables.ownership_intervals import ownership_intervals
from rebalance_lab.analysis.tables.trial_outcomes import trial_outcomes
from rebalance_lab.history.events import EventId
from rebalance_lab.history.files import HistoryError

#: Trials by id, or a choice among those of an analysis (which has no intervals yet).
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]

TASKS_PER_CORE = 4

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
    left out.

    Raises HistoryError (the message names the trial) for a store or trial that cannot be read
    and for a trial in `intervals_for` that is not there; SparkStartError, LedgerError.
    """
    found = read_store(store)
    claims = ledger or read_ledger()
    if spark is not None:
        with _spoken():
            return _analyse(spark, found, claims, intervals_for)
    with session.start() as local, _spoken():
        return _analyse(local.session, found, claims, intervals_for)


@contextmanager
def _spoken() -> Iterator[None]:
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
    # A task for each trial would cost more than judging it; a few for each core keep all cores busy.
    histories = read_histories(spark, store.path).coalesce(TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    outcomes = trial_outcomes(histories).persist()
    try:
        judged = rows_of(outcomes)
        verdicts = sorted(
            rows_of(claim_verdicts(outcomes, readings_table(spark, ledger))), key=lambda row: row["position"]
        )
    finally:
        outcomes.unpersist()
    analysis = Analysis(
        verdicts=tuple(_verdict(row, store) for row in verdicts),
        outcomes=tuple(_outcome(row) for row in sorted(judged, key=lambda row: (row["trial"], row["check"]))),
        intervals=(),
        trials=store.trials,
        cut_off=store.cut_off,
    )
    wanted = intervals_for(analysis) if callable(intervals_for) else intervals_for
    if wanted is None:
        wanted = [trial for row in verdicts for trial in row["examples"]]
    return dataclasses.replace(analysis, intervals=_intervals(spark, store, sorted(set(wanted))))


def _intervals(spark: SparkSession, store: Store, wanted: Sequence[str]) -> tuple[Interval, ...]:
    if not wanted:
        return ()
    trials = trials_table(spark, tuple(trial for trial in store.trials if trial.id in set(wanted)))
    events = read_events(spark, store.path, wanted).persist()  # the table looks at them many times
    try:
        found = [_interval(row) for row in rows_of(ownership_intervals(events, trials))]
    finally:
        events.unpersist()
    return tuple(
        sorted(found, key=lambda each: (each.trial, each.layer, each.topic, each.partition, each.begin_us, each.member))
    )


def replay_command(folder: Path) -> str:
    """What a person types to run a stored trial again."""
    return f"rebalance-lab replay {shlex.quote(str(folder))}"


def _id(row: dict[str, Any]) -> EventId:
    return (row["actor"], row["n"])


def _verdict(row: dict[str, Any], store: Store) -> Verdict:
    witness = row["witness"]
    return Verdict(
        claim=row["claim"],
        reading=row["reading"],
        statement=row["statement"],
        quantifier=row["quantifier"],
        expected=row["expected"],
        verdict=row["verdict"],
        status=row["status"],
        live=row["live"],
        simulated=row["simulated"],
        witness=witness,
        replay=None if witness is None else replay_command(store.folders[witness]),
        why=row["why"],
    )


def _outcome(row: dict[str, Any]) -> TrialOutcome:
    return TrialOutcome(
        trial=row["trial"],
        scenario=row["scenario"],
        world=row["world"],
        rules=row["rules"],
        seed=row["seed"],
        control=row["control"],
        plant=row["plant"],
        check=row["check"],
        outcome=row["outcome"],
        why=row["why"],
        witness=tuple(_id(each) for each in row["witness"]),
        longest_us=row["longest_us"],
        count=row["count"],
    )


def _interval(row: dict[str, Any]) -> Interval:
    return Interval(
        trial=row["trial"],
        layer=row["layer"],
        member=row["member"],
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        begin_us=row["begin_us"],
        end_us=row["end_us"],
        begin=_id(row["begin"]),
        end=None if row["end"] is None else _id(row["end"]),
    )
