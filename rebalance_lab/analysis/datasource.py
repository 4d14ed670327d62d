"""Histories as a Spark data source, `rebalance-history`: one partition a trial.

    register_histories(spark)
    events = spark.read.format("rebalance-history").load(store)

Options: `path`, a store or a single trial; `trials`, a JSON list of trial ids: the others are not opened (default:
all). Trials without `trial.json` were cut off and are left out. It is meant for some trials, where nothing is to be
written; `analysis.published` writes the events of a whole store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rebalance_lab.analysis.arrow_events import event_batches
from rebalance_lab.analysis.store import folder_name
from rebalance_lab.analysis.tables.schemas import EVENTS
from rebalance_lab.analysis.workers import Driver, settle_worker
from rebalance_lab.history.files import HistoryError, load, trial_folders

FORMAT = "rebalance-history"


def read_events(spark: SparkSession, store: Path, trials: Sequence[str] | None = None) -> DataFrame:
    """The events of a store's trials (all, or those named), schema EVENTS. It registers the source."""
    register_histories(spark)
    reader = spark.read.format(FORMAT).option("path", str(store.resolve()))
    if trials is not None:
        reader = reader.option("trials", msgspec.json.encode(list(trials)).decode())
    return reader.load()


def register_histories(spark: SparkSession) -> None:
    """Register the format `rebalance-history` in a session."""
    spark.dataSource.register(HistorySource)


class HistorySource(DataSource):  # type: ignore[misc]  # pyspark is untyped to mypy here
    """The data source. Raises HistoryError if `path` is missing."""

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
        trials = None if named is None else tuple(msgspec.json.decode(named, type=list[str]))
        return HistoryReader(Path(path), trials)


class HistoryReader(DataSourceReader):  # type: ignore[misc]
    """Reads trial folders. Raises HistoryError, which names the folder or the file and line, for a trial that cannot be
    read, and for one that is named but does not exist.

    It does not take Spark's filters (`pushFilters`). Spark 4.3.0 plans a pushed filter into the source that a DataFrame
    keeps, so the next query of the same DataFrame without such a filter silently gets the rows of the last one.
    """

    def __init__(self, store: Path, trials: tuple[str, ...] | None) -> None:
        self.store = store
        self.driver = Driver.here()
        self.trials = trials

    def partitions(self) -> list[InputPartition]:
        folders = {folder_name(folder): folder for folder in trial_folders(self.store)}
        names = sorted(folders) if self.trials is None else self.trials
        missing = [name for name in names if name not in folders]
        if missing:
            raise HistoryError(f"{self.store} holds no trial {missing[0]!r}, or one that was cut off")
        # Without any partition Spark would call read() with None.
        return [InputPartition(str(folders[name])) for name in names] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        settle_worker(self.driver)
        folder = Path(partition.value)
        try:
            history = load(folder)
        except OSError as error:
            raise HistoryError(f"the events of {folder} cannot be read: {error}") from error
        yield from event_batches(folder_name(folder), history.events)
