"""Trial outcomes: what every check says of every trial.

The trial function is `history.checks.judge`, the same that judges a single trial elsewhere;
Spark only brings it the trials.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, LongType, MapType, StringType, StructType

from rebalance_lab.analysis.datasource import events_of, settle_worker
from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.tables.schemas import EVENT_ID, column
from rebalance_lab.history.checks import judge
from rebalance_lab.history.checks.faults import faults
from rebalance_lab.history.files import History, HistoryError, Trial, merge

#: One row a trial and check. `bitten`: the trial has a fault, and each of its faults is shown to
#: have bitten. `longest_us` in microseconds; it and `count` are 0 where the check measures none.
OUTCOMES = StructType(
    [
        column("trial", StringType()),
        column("scenario", StringType()),
        column("world", StringType()),
        column("generation", StringType()),
        column("rules", StringType()),
        column("seed", LongType()),
        column("control", BooleanType()),
        column("plant", StringType(), null=True),
        column("parameters", MapType(StringType(), StringType(), False)),
        column("bitten", BooleanType()),
        column("check", StringType()),
        column("outcome", StringType()),
        column("why", StringType()),
        column("witness", ArrayType(EVENT_ID, False)),
        column("longest_us", LongType()),
        column("count", LongType()),
    ]
)

_OF_TRIAL = ("trial", "scenario", "world", "generation", "rules", "seed", "control", "plant", "parameters")


def trial_outcomes(events: DataFrame, trials: DataFrame) -> DataFrame:
    """EVENTS and TRIALS to OUTCOMES: a row for each trial of `trials` and each check.

    Trials without events are judged too (nothing happened, so nothing is proved); events of
    other trials are left out. Raises, when Spark runs it, HistoryError with the trial's name.
    """
    return events.groupBy("trial").cogroup(trials.groupBy("trial")).applyInArrow(_judge, OUTCOMES)


def _judge(events: pa.Table, trials: pa.Table) -> pa.Table:
    """The outcomes of one trial, from its events in any order."""
    settle_worker()
    rows = [row for trial in trials.to_pylist() for row in outcome_rows(trial, events)]
    return pa.Table.from_pylist(rows, schema=arrow_schema(OUTCOMES))


def outcome_rows(trial: dict[str, Any], events: pa.Table) -> list[dict[str, Any]]:
    """A trial's rows of OUTCOMES. `trial` is a row of TRIALS, `events` rows of EVENTS."""
    history = History(
        msgspec.json.decode(trial["document"], type=Trial),
        merge(events_of(events)),
    )
    try:
        findings = judge(history)
        found = faults(history)
    except HistoryError as error:
        raise HistoryError(f"trial {history.trial.id}: {error}") from error
    bitten = bool(found) and all(fault.why_not_bitten is None for fault in found)
    return [
        {name: trial[name] for name in _OF_TRIAL}
        | {
            "bitten": bitten,
            "check": check,
            "outcome": finding.outcome.value,
            "why": finding.why,
            "witness": [{"actor": actor, "n": n} for actor, n in finding.witness],
            "longest_us": finding.measures.get("longest_us", 0),
            "count": finding.measures.get("count", 0),
        }
        for check, finding in findings.items()
    ]
