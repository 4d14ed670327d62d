"""Trial outcomes: what every check says of every trial.

The trial function is `history.checks.judge`, the same that judges a single trial elsewhere;
Spark only brings it the trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructType

from rebalance_lab.analysis.datasource import events_of, settle_worker
from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.store import trial_row
from rebalance_lab.analysis.tables.schemas import EVENT_ID, EVENTS, TRIALS, column
from rebalance_lab.history.checks import judge
from rebalance_lab.history.checks.faults import faults
from rebalance_lab.history.files import History, HistoryError, Trial, merge

_OF_TRIAL = [field for field in TRIALS.fields if field.name != "document"]

#: One row a trial and check. `bitten`: the trial has a fault, and each of its faults is shown to
#: have bitten. `longest_us` in microseconds; it and `count` are 0 where the check measures none.
OUTCOMES = StructType(
    [
        *_OF_TRIAL,
        column("bitten", BooleanType()),
        column("check", StringType()),
        column("outcome", StringType()),
        column("why", StringType()),
        column("witness", ArrayType(EVENT_ID, False)),
        column("longest_us", LongType()),
        column("count", LongType()),
    ]
)


def trial_outcomes(events: DataFrame, trials: DataFrame) -> DataFrame:
    """EVENTS and TRIALS to OUTCOMES: a row for each trial of `trials` and each check.

    Trials without events are judged too (nothing happened, so nothing is proved); events of
    other trials are left out. Raises, when Spark runs it, HistoryError with the trial's name.
    """
    fields = [name for name in EVENTS.fieldNames() if name != "trial"]
    event = F.struct(*fields).alias("event")
    # One aggregation brings a trial's events and its document together. A cogroup would carry
    # the events row by row through a shuffle and a sort, which takes a third longer.
    parts = events.select("trial", event, F.lit(None).cast("string").alias("document")).unionByName(
        trials.select("trial", "document"), allowMissingColumns=True
    )
    whole = parts.groupBy("trial").agg(
        F.max("document").alias("document"),
        F.collect_list("event").alias("events"),  # neither counts nulls
    )
    return whole.where(F.col("document").isNotNull()).select("document", "events").mapInArrow(_judge, OUTCOMES)


def _judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches of (document, events), one row a trial, to rows of OUTCOMES."""
    settle_worker()
    schema = arrow_schema(OUTCOMES)
    for batch in batches:
        for number, document in enumerate(batch.column("document").to_pylist()):
            events = batch.column("events").slice(number, 1).flatten()
            rows = outcome_rows(document, pa.Table.from_batches([pa.RecordBatch.from_struct_array(events)]))
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def outcome_rows(document: str, events: pa.Table) -> list[dict[str, Any]]:
    """The rows of OUTCOMES of one trial, from its events in any order."""
    trial = msgspec.json.decode(document, type=Trial)
    history = History(trial, merge(events_of(events)))
    try:
        findings = judge(history)
        found = faults(history)
    except HistoryError as error:
        raise HistoryError(f"trial {trial.id}: {error}") from error
    row = trial_row(trial)
    of_trial = {field.name: row[field.name] for field in _OF_TRIAL}
    bitten = bool(found) and all(fault.why_not_bitten is None for fault in found)
    return [
        of_trial
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
