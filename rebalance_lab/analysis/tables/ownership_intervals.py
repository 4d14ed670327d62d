"""Ownership intervals of many trials, by the rules of `history.intervals`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_lab.analysis.frames import arrow_schema, plain_row, schema_of
from rebalance_lab.analysis.results import Interval
from rebalance_lab.analysis.tables.trial_results import PartReader
from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.analysis.workers import settle_worker
from rebalance_lab.history.files import History, HistoryError, Trial

#: One row an interval; the fields are those of `results.Interval`.
INTERVALS = schema_of(Interval)


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
                yield pa.RecordBatch.from_pylist([plain_row(each, INTERVALS) for each in found], schema=schema)
