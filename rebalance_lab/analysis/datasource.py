"""Histories as a Spark data source, `rebalance-history`: one partition a trial.

    spark.dataSource.register(HistorySource)
    events = spark.read.format("rebalance-history").option("path", store).load()

Options: `path`, a store or a single trial; `trials`, a JSON list of trial ids, all where left
out. Trials without `trial.json` were cut off and are left out.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.analysis.tables.schemas import EVENTS
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import HistoryError, load, trial_folders

FORMAT = "rebalance-history"

#: Rows of one Arrow batch: bounds the memory that one trial's conversion takes.
_BATCH_ROWS = 10_000

#: Fields of an event that are columns as they stand.
_PLAIN = tuple(name for name in Event.__struct_fields__ if name not in ("cause", "detail"))
_LAYERS = {layer.value: layer for layer in Layer}
_KINDS = {kind.value: kind for kind in Kind}

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


def read_events(spark: SparkSession, store: Path, trials: Sequence[str] | None = None) -> DataFrame:
    """The events of a store's trials (all, or those named), schema EVENTS."""
    spark.dataSource.register(HistorySource)
    reader = spark.read.format(FORMAT).option("path", str(store.resolve()))
    if trials is not None:
        reader = reader.option("trials", msgspec.json.encode(list(trials)).decode())
    return reader.load()


class HistorySource(DataSource):  # type: ignore[misc]  # pyspark is untyped to mypy here
    """The data source. Its schema is EVENTS, whatever the store holds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return EVENTS

    def reader(self, schema: StructType) -> HistoryReader:
        path = self.options.get("path")
        if not path:
            raise HistoryError(f"{FORMAT} needs the option `path`: the folder of a store, or of one trial")
        named = self.options.get("trials")
        return HistoryReader(Path(path), None if named is None else tuple(msgspec.json.decode(named, type=list[str])))


class HistoryReader(DataSourceReader):  # type: ignore[misc]
    """Reads trial folders. Raises HistoryError, which names the folder or the file and line,
    for a trial that cannot be read and for one that is named but not there."""

    def __init__(self, store: Path, trials: tuple[str, ...] | None) -> None:
        self.store = store
        self.trials = trials

    def partitions(self) -> list[InputPartition]:
        folders = {folder.name: folder for folder in trial_folders(self.store)}
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
            events = load(folder).events
        except OSError as error:
            raise HistoryError(f"the events of {folder} cannot be read: {error}") from error
        for start in range(0, len(events), _BATCH_ROWS):
            yield _batch(folder.name, events[start : start + _BATCH_ROWS])


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


def events_of(rows: pa.Table) -> list[Event]:
    """The events of rows of EVENTS: the inverse of what the reader does."""
    causes = rows["cause"].combine_chunks().flatten()  # null where the cause is
    columns = {name: rows[name].to_pylist() for name in (*_PLAIN, "detail")}
    columns["layer"] = [_LAYERS[layer] for layer in columns["layer"]]
    columns["kind"] = [_KINDS[kind] for kind in columns["kind"]]
    columns["detail"] = [None if detail is None else _decode(detail) for detail in columns["detail"]]
    columns["cause"] = [
        None if n is None else (actor, n) for actor, n in zip(*(part.to_pylist() for part in causes), strict=True)
    ]
    return list(map(Event, *(columns[name] for name in Event.__struct_fields__)))


@functools.lru_cache(maxsize=1)
def settle_worker() -> None:
    """Once in a Spark worker: its modules live as long as it does.

    Spark collects garbage after every task; without this each collection walks all modules,
    which takes longer than reading a trial.
    """
    gc.freeze()
