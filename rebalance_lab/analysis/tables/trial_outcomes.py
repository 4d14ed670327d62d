"""Trial outcomes: what every check says of every trial.

The trial function is `history.checks.judge`, the same that judges a single trial elsewhere;
Spark only brings it the trials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructType

from rebalance_lab.analysis.datasource import settle_worker
from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.store import trial_row
from rebalance_lab.analysis.tables.schemas import EVENT_ID, TRIALS, column
from rebalance_lab.history.checks import judge
from rebalance_lab.history.checks.faults import faults
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, HistoryError, Trial

_OF_TRIAL = [field for field in TRIALS.fields if field.name != "document"]

#: One row a trial and check. `bitten`: the trial has a fault, and each of its faults is shown to
#: have bitten. `history_sha256` is of the events themselves, as `history.files.digest` has it,
#: whatever `trial.json` says. `longest_us` in microseconds; it and `count` are 0 where the check
#: measures none.
OUTCOMES = StructType(
    [
        *_OF_TRIAL,
        column("history_sha256", StringType()),
        column("bitten", BooleanType()),
        column("check", StringType()),
        column("outcome", StringType()),
        column("why", StringType()),
        column("witness", ArrayType(EVENT_ID, False)),
        column("longest_us", LongType()),
        column("count", LongType()),
    ]
)


_decoder = msgspec.json.Decoder(Event)


def trial_outcomes(histories: DataFrame) -> DataFrame:
    """HISTORIES to OUTCOMES: a row for each trial and each check.

    A trial without events is judged too: nothing happened, so nothing is proved. Raises, when
    Spark runs it, HistoryError with the trial's name.
    """
    # A trial travels as one row of JSON lines: as a row for each event, its way through Spark
    # (a shuffle, a sort, conversions on each side) takes five times as long as judging it.
    return histories.select("document", "lines").mapInArrow(_judge, OUTCOMES)


def _judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches of (document, lines), one row a trial, to rows of OUTCOMES."""
    settle_worker()
    schema = arrow_schema(OUTCOMES)
    for batch in batches:
        for document, lines in zip(*(values.to_pylist() for values in batch.columns), strict=True):
            yield pa.RecordBatch.from_pylist(outcome_rows(document, lines), schema=schema)


def outcome_rows(document: str, lines: bytes) -> list[dict[str, Any]]:
    """The rows of OUTCOMES of one trial: its `trial.json` and its merged events."""
    trial = msgspec.json.decode(document, type=Trial)
    history = History(trial, tuple(_decoder.decode_lines(lines)))
    try:
        findings = judge(history)
        found = faults(history)
    except HistoryError as error:
        raise HistoryError(f"trial {trial.id}: {error}") from error
    row = trial_row(trial)
    of_trial = {field.name: row[field.name] for field in _OF_TRIAL}
    of_trial["history_sha256"] = hashlib.sha256(lines).hexdigest()
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
