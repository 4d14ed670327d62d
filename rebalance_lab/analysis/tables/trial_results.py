"""All that is said of each trial by itself: the one pass over the events of a store.

Only the place of a trial travels through Spark; a worker reads its events there, one trial at a
time. As a row for each event, their way takes five times as long as judging them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, StringType, StructType

from rebalance_lab.analysis.arrow_events import events_of
from rebalance_lab.analysis.frames import arrow_schema, plain_row
from rebalance_lab.analysis.tables.herd_costs import HERD_COSTS
from rebalance_lab.analysis.tables.rebalance_episodes import EPISODES
from rebalance_lab.analysis.tables.schemas import HISTORIES, column
from rebalance_lab.analysis.tables.trial_outcomes import FINDINGS
from rebalance_lab.analysis.trialwise.credentials import unproved
from rebalance_lab.analysis.trialwise.episodes import episodes
from rebalance_lab.analysis.trialwise.herd_costs import herd_costs
from rebalance_lab.analysis.trialwise.rows import outcomes_of
from rebalance_lab.analysis.workers import settle_worker
from rebalance_lab.checks import judge
from rebalance_lab.checks.faults import faults
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, HistoryError, Trial

#: One row a trial: HISTORIES without its place; `faults`, how many it had, of them `bitten` are
#: shown to have bitten; what a live one has `unproved` (see `trialwise.credentials`); and
#: the rows that it has in three tables.
RESULTS = StructType(
    [
        *(field for field in HISTORIES.fields if field.name not in ("document", "part", "first_group", "groups")),
        column("faults", LongType()),
        column("bitten", LongType()),
        column("unproved", StringType(), null=True),
        column("findings", ArrayType(FINDINGS, False)),
        column("episodes", ArrayType(EPISODES, False)),
        column("herd_costs", ArrayType(HERD_COSTS, False)),
    ]
)

_AS_GIVEN = [field.name for field in RESULTS.fields if field.name in HISTORIES.fieldNames()]


def trial_results(histories: DataFrame) -> DataFrame:
    """HISTORIES to RESULTS, one row a trial.

    A trial without events is judged too: nothing happened, so nothing is proved. Raises, when
    Spark runs it, HistoryError with the trial's name.
    """
    return histories.mapInArrow(_results, RESULTS)


def _results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches of HISTORIES to rows of RESULTS."""
    settle_worker()
    schema = arrow_schema(RESULTS)
    with PartReader() as parts:
        for batch in batches:
            for row in batch.to_pylist():
                history = History(msgspec.json.decode(row["document"], type=Trial), parts.events(row))
                yield pa.RecordBatch.from_pylist([result_row(row, history)], schema=schema)


class PartReader:
    """Reads trials from Parquet. One file is open at a time: opening reads the places of all its
    row groups, and a task's trials lie side by side."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._path = ""
        self._file: pq.ParquetFile | None = None

    def __enter__(self) -> PartReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def events(self, place: dict[str, Any]) -> tuple[Event, ...]:
        """The events of a row of HISTORIES."""
        if place["groups"] == 0:
            return ()
        if self._file is None or self._path != place["part"]:
            self._stack.close()
            self._path = place["part"]
            self._file = self._stack.enter_context(pq.ParquetFile(self._path))
        groups = range(place["first_group"], place["first_group"] + place["groups"])
        return tuple(events_of(self._file.read_row_groups(list(groups), use_threads=False)))


def result_row(given: dict[str, Any], history: History) -> dict[str, Any]:
    """The row of RESULTS of one trial. Raises HistoryError with the trial's name."""
    try:
        findings = judge(history)
        found = faults(history)
        told: dict[str, list[Any]] = {"episodes": episodes(history), "herd_costs": herd_costs(history)}
    except HistoryError as error:
        raise HistoryError(f"trial {history.trial.id}: {error}") from error
    return {
        **{name: given[name] for name in _AS_GIVEN},
        "faults": len(found),
        "bitten": sum(fault.why_not_bitten is None for fault in found),
        "unproved": unproved(history),
        "findings": [plain_row(each, FINDINGS) for each in outcomes_of(history.trial, findings)],
        **{name: [dataclasses.asdict(row) for row in rows] for name, rows in told.items()},
    }
