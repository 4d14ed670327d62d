"""Histories as a Spark data source, `rebalance-history`: one partition a trial.

    spark.dataSource.register(HistorySource)
    events = spark.read.format("rebalance-history").option("path", store).load()

Options: `path`, a store or a single trial; `trials`, a JSON list of trial ids, all where left
out; `rows`, what a row is: `events` (schema EVENTS, where left out) or `histories` (schema
HISTORIES, a whole trial). Trials without `trial.json` were cut off and are left out.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Sequence
from enum import Enum
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.store import folder_name, named_by_folder, trial_row
from rebalance_lab.analysis.tables.schemas import EVENTS, HISTORIES
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import HistoryError, canonical, load, trial_folders

FORMAT = "rebalance-history"


class Rows(Enum):
    """What a row is."""

    EVENTS = "events"
    HISTORIES = "histories"


SCHEMAS = {Rows.EVENTS: EVENTS, Rows.HISTORIES: HISTORIES}

#: Rows of one Arrow batch: bounds the memory that one trial's conversion takes.
_BATCH_ROWS = 10_000

#: Fields of an event that are columns as they stand.
_PLAIN = tuple(name for name in Event.__struct_fields__ if name not in ("cause", "detail"))

_SETTLING_TASKS = 3
_tasks = itertools.count()

_encode = msgspec.json.Encoder(order="deterministic").encode


def read_events(spark: SparkSession, store: Path, trials: Sequence[str] | None = None) -> DataFrame:
    """The events of a store's trials (all, or those named), schema EVENTS."""
    return _read(spark, store, trials, Rows.EVENTS)


def read_histories(spark: SparkSession, store: Path, trials: Sequence[str] | None = None) -> DataFrame:
    """The trials of a store (all, or those named), each with its events, schema HISTORIES."""
    return _read(spark, store, trials, Rows.HISTORIES)


def _read(spark: SparkSession, store: Path, trials: Sequence[str] | None, rows: Rows) -> DataFrame:
    spark.dataSource.register(HistorySource)
    reader = spark.read.format(FORMAT).option("path", str(store.resolve())).option("rows", rows.value)
    if trials is not None:
        reader = reader.option("trials", msgspec.json.encode(list(trials)).decode())
    return reader.load()


class HistorySource(DataSource):  # type: ignore[misc]  # pyspark is untyped to mypy here
    """The data source. Raises HistoryError for options that it does not know."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return SCHEMAS[self._rows()]

    def reader(self, schema: StructType) -> HistoryReader:
        path = self.options.get("path")
        if not path:
            raise HistoryError(f"{FORMAT} needs the option `path`: the folder of a store, or of one trial")
        named = self.options.get("trials")
        trials = None if named is None else tuple(msgspec.json.decode(named, type=list[str]))
        return HistoryReader(Path(path), trials, self._rows())

    def _rows(self) -> Rows:
        said = self.options.get("rows", Rows.EVENTS.value)
        try:
            return Rows(said)
        except ValueError:
            raise HistoryError(f"{FORMAT} has no rows {said!r}: `events` or `histories`") from None


class HistoryReader(DataSourceReader):  # type: ignore[misc]
    """Reads trial folders. Raises HistoryError, which names the folder or the file and line,
    for a trial that cannot be read and for one that is named but not there."""

    def __init__(self, store: Path, trials: tuple[str, ...] | None, rows: Rows) -> None:
        self.store = store
        self.trials = trials
        self.rows = rows

    def partitions(self) -> list[InputPartition]:
        folders = {folder_name(folder): folder for folder in trial_folders(self.store)}
        names = sorted(folders) if self.trials is None else self.trials
        missing = [name for name in names if name not in folders]
        if missing:
            raise HistoryError(f"{self.store} holds no trial {missing[0]!r}, or one that was cut off")
        # Without a partition Spark would call read() with none.
        return [InputPartition(str(folders[name])) for name in names] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        settle_worker()
        folder = Path(partition.value)
        try:
            history = load(folder)
        except OSError as error:
            raise HistoryError(f"the events of {folder} cannot be read: {error}") from error
        trial = named_by_folder(history.trial, folder)
        if self.rows is Rows.HISTORIES:
            row = trial_row(trial) | {"lines": canonical(history.events)}
            yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(HISTORIES))
            return
        for start in range(0, len(history.events), _BATCH_ROWS):
            yield _batch(trial.id, history.events[start : start + _BATCH_ROWS])


def _batch(trial: str, events: Sequence[Event]) -> pa.RecordBatch:
    columns = {name: list(map(attrgetter(name), events)) for name in _PLAIN}
    columns["trial"] = [trial] * len(events)
    columns["detail"] = [None if event.detail is None else _encode(event.detail).decode() for event in events]
    schema = arrow_schema(EVENTS)
    arrays = [
        _causes(events, field.type) if field.name == "cause" else pa.array(columns[field.name], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _causes(events: Sequence[Event], kind: pa.StructType) -> pa.StructArray:
    """Built from its parts: a dict for each event would take as long as all other columns."""
    ids = [event.cause or ("", -1) for event in events]
    return pa.StructArray.from_arrays(
        [pa.array([actor for actor, _ in ids], pa.string()), pa.array([n for _, n in ids], pa.int64())],
        fields=list(kind.fields),
        mask=pa.array([event.cause is None for event in events]),
    )


def settle_worker() -> None:
    """In a Spark worker, at the begin of a task: its modules live as long as it does.

    Spark collects garbage after every task; each time that would walk all modules, which takes
    longer than reading a trial. Libraries load on first use, so one task is not enough; for
    ever would keep what tasks leave behind.
    """
    if next(_tasks) < _SETTLING_TASKS:
        gc.freeze()
