"""A store's tables as Parquet that other programs read (`rebalance-lab tables`).

A folder holds a folder for each table and `tables.json` (`Published`). Tables of trials are partitioned by scenario and
world, in Hive's layout (`episodes/scenario=zombie/world=simulated/….parquet`). All other tools than Spark read them as
well. The rows are those of `claims` and `report`: `summarised.store_tables` makes both.

Schemas change by additions only: a later version of a table has more columns, which may be null, and `read_table` reads
the files of every earlier version. It raises an error for a table that an earlier version did not have. A folder is
written beside its place and renamed, so nobody sees a part of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import msgspec
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import StringType, StructType

from rebalance_lab.analysis import file_systems
from rebalance_lab.analysis.errors import TablesError
from rebalance_lab.analysis.frames import arrow_schema, as_declared, schema_of
from rebalance_lab.analysis.ledger import Ledger
from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.remote_store import open_store
from rebalance_lab.analysis.results import Episode, HerdCost, LeftOut, TrialMeasures, TrialOutcome
from rebalance_lab.analysis.session import removed_with_spark
from rebalance_lab.analysis.store import Store
from rebalance_lab.analysis.summarised import judged, store_tables
from rebalance_lab.analysis.tables.claim_verdicts import VERDICTS
from rebalance_lab.analysis.tables.fits import FITS
from rebalance_lab.analysis.tables.intervals import (
    IN_SYNC,
    INTERVALS,
    LEADERSHIPS,
    in_sync,
    leaderships,
    ownership_intervals,
    trial_ends,
)
from rebalance_lab.analysis.tables.operations import OPERATIONS, operations
from rebalance_lab.analysis.tables.placements import PLACEMENTS, placements
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.scenario_summaries import SUMMARIES
from rebalance_lab.analysis.tables.schemas import EVENTS, column
from rebalance_lab.analysis.tables.trial_results import RESULTS, held_intervals
from rebalance_lab.analysis.uri import Place, StoreUri, literal
from rebalance_lab.history.disk import is_for_want_of_space
from rebalance_lab.history.files import write_whole
from rebalance_lab.history.intervals import holdings_by_subject
from rebalance_lab.history.scratch import Scratch, orphans, owned, remove_whole

#: Goes up when a table gets a column.
SCHEMA_VERSION = 2

MANIFEST = "tables.json"

#: The file in a folder at a URI that says that a command is writing there. Readers of tables do not see it.
WRITING = "_writing"

#: The columns that are folders.
PARTITIONED_BY = ("scenario", "world")

#: The most rows of one file: some 50 MB of events.
FILE_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Declared:
    """A table: its columns, the order of its rows in a file, whether its trials are spread over several files
    (`large`), and whether it is partitioned."""

    schema: StructType
    order: tuple[str, ...]
    large: bool = False
    partitioned: bool = True


def _of_trials(schema: StructType, *order: str, large: bool = False) -> Declared:
    """A table with the columns that are folders at the end, as readers show them."""
    own = [field for field in schema.fields if field.name not in PARTITIONED_BY]
    return Declared(StructType([*own, *(column(name, StringType()) for name in PARTITIONED_BY)]), order, large)


def _without(schema: StructType, *names: str) -> StructType:
    return StructType([field for field in schema.fields if field.name not in names])


#: All tables, in the order in which they are listed.
TABLES: Mapping[str, Declared] = {
    "trials": _of_trials(_without(RESULTS, "findings", "episodes", "herd_costs"), "trial"),
    "findings": _of_trials(schema_of(TrialOutcome), "trial", "check"),
    "events": _of_trials(EVENTS, "trial", "at_us", "actor", "n", large=True),
    "intervals": _of_trials(INTERVALS, "trial", "layer", "topic", "partition", "begin_us", "member", large=True),
    "leaderships": _of_trials(LEADERSHIPS, "trial", "topic", "partition", "begin_us", large=True),
    "in_sync": _of_trials(IN_SYNC, "trial", "topic", "partition", "begin_us", "replica", large=True),
    "placements": _of_trials(PLACEMENTS, "trial", "topic", "partition", "position", large=True),
    "operations": _of_trials(OPERATIONS, "trial", "phase_number", "actor", "operation", large=True),
    "episodes": _of_trials(schema_of(Episode), "trial", "group", "number"),
    "herd_costs": _of_trials(schema_of(HerdCost), "trial", "group", "begin_us"),
    "measures": _of_trials(schema_of(TrialMeasures), "trial"),
    "fits": _of_trials(FITS, "rules", "change", "measure", "model"),
    "summaries": _of_trials(SUMMARIES, "rules", "control", "measure"),
    "verdicts": Declared(_without(VERDICTS, "examples"), ("position",), partitioned=False),
}


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written. `columns`: name to Spark's type."""

    rows: int
    files: int
    bytes: int
    columns: dict[str, str]


class Published(msgspec.Struct, frozen=True):
    """What `tables.json` says. `lab`: the version that wrote it. `left_out`, `cut_off`: as in `results.Analysis`."""

    schema_version: int
    lab: str
    tables: dict[str, Written]
    left_out: tuple[LeftOut, ...]
    cut_off: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return not self.left_out and not self.cut_off


class Source(Protocol):
    """What the tables of a store are made of. `left_out`, `cut_off`: as of `results.Analysis`, beside the trials that
    cannot be judged."""

    @property
    def spark(self) -> SparkSession: ...
    @property
    def left_out(self) -> tuple[LeftOut, ...]: ...
    @property
    def cut_off(self) -> tuple[str, ...]: ...
    @property
    def events(self) -> DataFrame:
        """All events, schema EVENTS, in no order."""

    @property
    def listed(self) -> DataFrame:
        """The trials, with the columns of TRIALS, and perhaps more."""

    def held_intervals(self, generations: Sequence[str]) -> DataFrame:
        """INTERVALS of the trials of some subjects, by the functions that these registered."""

    def judged(self, *, rejudge: bool = False) -> AbstractContextManager[tuple[DataFrame, tuple[LeftOut, ...]]]:
        """RESULTS of the trials that can be judged, and the others."""


@dataclass(frozen=True, slots=True)
class StoredHere:
    """A store on this machine as a Source."""

    parquet: Parquet

    @property
    def spark(self) -> SparkSession:
        return self.parquet.spark

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return (*self.parquet.store.left_out, *self.parquet.left_out)

    @property
    def cut_off(self) -> tuple[str, ...]:
        return self.parquet.store.cut_off

    @property
    def events(self) -> DataFrame:
        return self.parquet.events

    @property
    def listed(self) -> DataFrame:
        return self.parquet.histories

    def held_intervals(self, generations: Sequence[str]) -> DataFrame:
        return held_intervals(self.parquet.histories.where(F.col("generation").isin(*generations)))

    def judged(self, *, rejudge: bool = False) -> AbstractContextManager[tuple[DataFrame, tuple[LeftOut, ...]]]:
        return judged(self.parquet.spark, self.parquet.rows, rejudge=rejudge)


def must_be_free(out: Place) -> None:
    """Raises TablesError if there is something where the tables should be, or if nothing can be written there. Of a URI
    `publish` finds out."""
    if isinstance(out, StoreUri):
        return
    if os.path.lexists(out):
        raise TablesError(f"{out} exists already; remove it, or choose another folder with --out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        why = f"{out.parent} is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise TablesError(f"{out} cannot be written: {why}; choose another folder with --out") from error


def publish(
    spark: SparkSession, store: Store | StoreUri, ledger: Ledger, out: Place, *, rejudge: bool = False
) -> Published:
    """Write all tables of a store to the folder `out`, which must not exist. Raises TablesError; of a store at a URI
    HistoryError, OSError."""
    must_be_free(out)
    written_at = _at(spark, out) if isinstance(out, StoreUri) else _beside(spark, out)
    with written_at as folder, _source(spark, store) as source, source.judged(rejudge=rejudge) as (results, left_out):
        tables = _all_tables(source, results, ledger)
        places = _places(results).persist()
        try:
            written = {name: _write(tables[name], each, folder / name, places) for name, each in TABLES.items()}
        finally:
            places.unpersist()
        missing = (*source.left_out, *left_out)
        published = Published(SCHEMA_VERSION, version("rebalance-lab"), written, missing, source.cut_off)
        text = msgspec.json.format(msgspec.json.encode(published), indent=1) + b"\n"
        if isinstance(folder, StoreUri):
            file_systems.write(spark, folder / MANIFEST, text)
        else:
            write_whole(folder / MANIFEST, text)
    return published


@contextmanager
def _source(spark: SparkSession, store: Store | StoreUri) -> Iterator[Source]:
    if isinstance(store, Store):
        with parquet_of(spark, store) as parquet:
            yield StoredHere(parquet)
        return
    remote = open_store(spark, store)
    events = remote.events.persist(StorageLevel.DISK_ONLY)  # several tables are made of them
    try:
        yield replace(remote, decoded=events)
    finally:
        events.unpersist()


@contextmanager
def _at(spark: SparkSession, out: StoreUri) -> Iterator[StoreUri]:
    """A folder at a URI, which goes if the block fails. It is whole when it has its `tables.json`: such file systems
    need not rename a folder in one step. Raises TablesError."""
    try:
        if file_systems.exists(spark, out):
            raise TablesError(f"{out} exists already; remove it, or choose another folder with --out")
        if not file_systems.claim(spark, out / WRITING):
            raise TablesError(f"{out} is being written by another command; choose another folder with --out")
        try:
            yield out
            file_systems.remove(spark, out / WRITING)
        except BaseException:
            with suppress(Py4JError, PySparkException, OSError):  # Spark may be what has failed
                spark.interruptAll()  # as in `_beside`
                file_systems.remove(spark, out)
            raise
    except OSError as error:
        raise TablesError(f"{out} was not written: {error}") from error


@contextmanager
def _beside(spark: SparkSession, out: Path) -> Iterator[Path]:
    """A folder that gets the name `out` at the end of the block, or goes. Raises TablesError."""
    for orphan in orphans(out.parent, f".{out.name}.*.part"):
        remove_whole(orphan)
    with owned(lambda: Scratch.make(out.parent.resolve() / f".{out.name}.{os.getpid()}.part")) as scratch:
        try:
            yield scratch.folder
            scratch.rename(out)
        except BaseException as error:
            with suppress(Py4JError, PySparkException, OSError):  # Spark may be what has failed
                spark.interruptAll()  # else its tasks go on after a signal, and make the folder again
            removed_with_spark(scratch.folder)  # and one of them may be about to
            scratch.remove()
            failed = isinstance(error, OSError | Py4JError | PySparkException)
            if failed and is_for_want_of_space(error, out.parent):
                raise TablesError(
                    f"{out} was not written: no space is left on its disk, or on that of the store; "
                    "make room, or choose another folder with --out"
                ) from error
            if isinstance(error, OSError):
                raise TablesError(f"{out} was not written: {error}") from error
            raise
        scratch.keep()


def _all_tables(source: Source, results: DataFrame, ledger: Ledger) -> dict[str, DataFrame]:
    events, listed = source.events, source.listed
    ends = trial_ends(events)
    found = store_tables(results, readings_table(source.spark, ledger))
    found["findings"] = found.pop("outcomes")
    held = holdings_by_subject()
    ours = listed.where(~F.col("generation").isin(*held))
    intervals = ownership_intervals(events.join(F.broadcast(ours.select("trial")), "trial"), ours, ends)
    intervals = intervals.unionByName(source.held_intervals(list(held)))
    return found | {
        "trials": results,
        "events": events,
        "intervals": intervals,
        "leaderships": leaderships(events, ends),
        "in_sync": in_sync(events, ends),
        "placements": placements(events),
        "operations": operations(events),
    }


def _places(results: DataFrame) -> DataFrame:
    """Where the rows of each trial go: scenario, world, and the number of the file of a large table."""
    query = f"""
        SELECT trial, scenario, world,
               (sum(events) OVER (PARTITION BY scenario, world ORDER BY trial) - 1) DIV {FILE_ROWS} AS file
        FROM {{results}}
    """
    return results.sparkSession.sql(query, results=results)


def _write(frame: DataFrame, declared: Declared, folder: Place, places: DataFrame) -> Written:
    if not declared.partitioned:
        rows = as_declared(frame, declared.schema).coalesce(1).sortWithinPartitions(*declared.order)
        _writer(rows).parquet(str(folder))
    elif declared.large or any(name not in frame.columns for name in PARTITIONED_BY):
        apart = ("file",) if declared.large else ()
        rows = frame.drop(*PARTITIONED_BY).join(F.broadcast(places), "trial").repartition(*PARTITIONED_BY, *apart)
        _write_partitioned(rows, declared, folder)
    else:
        _write_partitioned(frame.repartition(*PARTITIONED_BY), declared, folder)
    if isinstance(folder, StoreUri):
        return _written_at(frame.sparkSession, folder, declared.schema)
    return _written(folder, declared.schema)


def _write_partitioned(rows: DataFrame, declared: Declared, folder: Place) -> None:
    rows = as_declared(rows, declared.schema).sortWithinPartitions(*PARTITIONED_BY, *declared.order)
    _writer(rows).partitionBy(*PARTITIONED_BY).parquet(str(folder))


def _writer(rows: DataFrame):  # type: ignore[no-untyped-def]  # pyspark is untyped to mypy here
    options = {"compression": "zstd", "maxRecordsPerFile": FILE_ROWS}
    return rows.write.options(**options, **{"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"})


def _written(folder: Path, schema: StructType) -> Written:
    """What was written. A table without rows gets a file without rows, because readers need one."""
    folder.mkdir(exist_ok=True)
    for checksum in folder.rglob(".*.crc"):  # of Hadoop: only it reads them, and fails if another tool changes a file
        checksum.unlink()
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        files = [folder / "empty.parquet"]
        pq.write_table(arrow_schema(schema).empty_table(), files[0])
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return Written(rows, len(files), sum(file.stat().st_size for file in files), _columns(schema))


def _written_at(spark: SparkSession, folder: StoreUri, schema: StructType) -> Written:
    """`_written` at a URI."""
    sizes = file_systems.sizes(spark, folder, ".parquet")
    if not sizes:
        _writer(spark.createDataFrame([], schema).coalesce(1)).mode("overwrite").parquet(str(folder))
        sizes = file_systems.sizes(spark, folder, ".parquet")
    rows = spark.read.schema(schema).parquet(literal(folder)).count()  # by the files' footers
    return Written(rows, len(sizes), sum(sizes), _columns(schema))


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def read_table(spark: SparkSession, folder: Place | str, table: str) -> DataFrame:
    """A table that `publish` wrote, with the columns of today: those that an older lab did not write are null. Raises
    TablesError for a folder without tables, one of a newer lab, an unknown table, and one that the lab did not have."""
    place: Place = StoreUri.parse(str(folder)) or Path(str(folder))
    manifest = place / MANIFEST
    try:
        text = manifest.read_bytes() if isinstance(manifest, Path) else file_systems.read(spark, manifest)
        found = msgspec.json.decode(text, type=Published)
    except (OSError, msgspec.DecodeError) as error:
        raise TablesError(f"{manifest} cannot be read: {error}; `rebalance-lab tables` writes it") from error
    if found.schema_version > SCHEMA_VERSION:
        raise TablesError(
            f"{manifest} has schema {found.schema_version}; this lab reads up to {SCHEMA_VERSION}: update it"
        )
    if table not in TABLES:
        raise TablesError(f"there is no table {table}; there are: {', '.join(TABLES)}")
    if table not in found.tables:
        raise TablesError(
            f"{place} has no table {table}: rebalance-lab {found.lab} wrote it, which had none; write the tables again"
        )
    return spark.read.schema(TABLES[table].schema).parquet(literal(place / table))
