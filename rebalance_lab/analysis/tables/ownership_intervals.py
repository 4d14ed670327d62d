"""Ownership intervals of many trials, by the rules of `history.intervals`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.tables.schemas import EVENT_ID, column
from rebalance_lab.analysis.tables.trial_results import PartReader
from rebalance_lab.analysis.workers import settle_worker
from rebalance_lab.history.files import History, HistoryError, Trial
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.intervals import ownership_intervals as intervals_of

#: One row an interval. Times in microseconds; `begin` and `end` are the events that bound it,
#: `end` is null (and `end_us` the trial's last event) where the history ends first.
INTERVALS = StructType(
    [
        column("trial", StringType()),
        column("layer", StringType()),
        column("member", StringType()),
        column("group", StringType()),
        column("topic", StringType()),
        column("partition", IntegerType()),
        column("begin_us", LongType()),
        column("end_us", LongType()),
        column("begin", EVENT_ID),
        column("end", EVENT_ID, null=True),
    ]
)


def ownership_intervals(histories: DataFrame) -> DataFrame:
    """HISTORIES to INTERVALS, in no order: all three layers. Raises, when Spark runs it,
    HistoryError with the trial's name."""
    return histories.mapInArrow(_intervals, INTERVALS)


def _intervals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches of HISTORIES to batches of INTERVALS, one a trial."""
    settle_worker()
    schema = arrow_schema(INTERVALS)
    with PartReader() as parts:
        for batch in batches:
            for row in batch.to_pylist():
                history = History(msgspec.json.decode(row["document"], type=Trial), parts.events(row))
                try:
                    found = intervals_of(history)
                except HistoryError as error:
                    raise HistoryError(f"trial {row['trial']}: {error}") from error
                yield pa.RecordBatch.from_pylist([_row(row["trial"], each) for each in found], schema=schema)


def _row(trial: str, interval: Interval) -> dict[str, Any]:
    row = {name: getattr(interval, name) for name in INTERVALS.fieldNames() if name not in ("trial", "begin", "end")}
    return row | {"trial": trial, "layer": interval.layer.value, "begin": _id(interval.begin), "end": _id(interval.end)}


def _id(event: tuple[str, int] | None) -> dict[str, object] | None:
    return None if event is None else {"actor": event[0], "n": event[1]}
