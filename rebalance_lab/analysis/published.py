"""A store's tables as Parquet that other programs read (`rebalance-lab tables`).

A folder holds a folder for each table and `tables.json` (`Published`). Tables of trials are partitioned by scenario and
world, in Hive's layout (`episodes/scenario=zombie/world=simulated/….parquet`). All other tools than Spark read them as
well. The rows are those of `claims` and `report`: `summarised.store_tables` makes both.

Schemas change by additions only: a later version of a table has more columns, which may be null, and `read_table` reads
the files of every earlier version. A folder is written beside its place and renamed, so nobody sees a part of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import StringType, StructType

from rebalance_lab.analysis.errors import TablesError
from rebalance_lab.analysis.frames import arrow_schema, as_declared, schema_of
from rebalance_lab.analysis.ledger import Ledger
from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.results import Episode, HerdCost, LeftOut, TrialMeasures, TrialOutcome
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
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.scenario_summaries import SUMMARIES
from rebalance_lab.analysis.tables.schemas import EVENTS, column
from rebalance_lab.analysis.tables.trial_results import RESULTS, held_intervals
from rebalance_lab.history.disk import is_for_want_of_space
from rebalance_lab.history.files import write_whole
from rebalance_lab.history.intervals import holdings_by_subject
from rebalance_lab.history.scratch import Scratch, orphans, remove_whole

#: Goes up when a table gets a column.
SCHEMA_VERSION = 1

MANIFEST = "tables.json"

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


def must_be_free(out: Path) -> None:
    """Raises TablesError if there is something where the tables should be, or if nothing can be written there."""
    if os.path.lexists(out):
        raise TablesError(f"{out} exists already; remove it, or choose another folder with --out")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        why = f"{out.parent} is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise TablesError(f"{out} cannot be written: {why}; choose another folder with --out") from error


def publish(spark: SparkSession, store: Store, ledger: Ledger, out: Path, *, rejudge: bool = False) -> Published:
    """Write all tables of a store to the folder `out`, which must not exist. Raises TablesError."""
    must_be_free(out)
    with _beside(spark, out) as folder, parquet_of(spark, store) as parquet:
        with judged(spark, parquet.rows, rejudge=rejudge) as (results, left_out):
            tables = _all_tables(parquet, results, ledger)
            places = _places(results).persist()
            try:
                written = {name: _write(tables[name], each, folder / name, places) for name, each in TABLES.items()}
            finally:
                places.unpersist()
        missing = (*store.left_out, *parquet.left_out, *left_out)
        published = Published(SCHEMA_VERSION, version("rebalance-lab"), written, missing, store.cut_off)
        write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(published), indent=1) + b"\n")
    return published


@contextmanager
def _beside(spark: SparkSession, out: Path) -> Iterator[Path]:
    """A folder that gets the name `out` at the end of the block, or goes. Raises TablesError."""
    for orphan in orphans(out.parent, f".{out.name}.*.part"):
        remove_whole(orphan)
    scratch = Scratch.make(out.parent.resolve() / f".{out.name}.{os.getpid()}.part")
    try:
        yield scratch.folder
        scratch.folder.rename(out)
    except BaseException as error:
        with suppress(Py4JError, PySparkException, OSError):  # Spark may be what has failed
            spark.interruptAll()  # else its tasks go on after a signal, and make the folder again
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
    Scratch(out, scratch.lock).keep()


def _all_tables(parquet: Parquet, results: DataFrame, ledger: Ledger) -> dict[str, DataFrame]:
    events, histories = parquet.events, parquet.histories
    ends = trial_ends(events)
    found = store_tables(results, readings_table(parquet.spark, ledger))
    found["findings"] = found.pop("outcomes")
    is_held = F.col("generation").isin(*holdings_by_subject())
    ours = histories.where(~is_held)
    intervals = ownership_intervals(events.join(F.broadcast(ours.select("trial")), "trial"), ours, ends)
    intervals = intervals.unionByName(held_intervals(histories.where(is_held)))
    return found | {
        "trials": results,
        "events": events,
        "intervals": intervals,
        "leaderships": leaderships(events, ends),
        "in_sync": in_sync(events, ends),
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


def _write(frame: DataFrame, declared: Declared, folder: Path, places: DataFrame) -> Written:
    if not declared.partitioned:
        rows = as_declared(frame, declared.schema).coalesce(1).sortWithinPartitions(*declared.order)
        _writer(rows).parquet(str(folder))
    elif declared.large or any(name not in frame.columns for name in PARTITIONED_BY):
        apart = ("file",) if declared.large else ()
        rows = frame.drop(*PARTITIONED_BY).join(F.broadcast(places), "trial").repartition(*PARTITIONED_BY, *apart)
        _write_partitioned(rows, declared, folder)
    else:
        _write_partitioned(frame.repartition(*PARTITIONED_BY), declared, folder)
    return _written(folder, declared.schema)


def _write_partitioned(rows: DataFrame, declared: Declared, folder: Path) -> None:
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
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    return Written(rows, len(files), sum(file.stat().st_size for file in files), columns)


def read_table(spark: SparkSession, folder: Path | str, table: str) -> DataFrame:
    """A table that `publish` wrote, with the columns of today: those that an older lab did not write are null. Raises
    TablesError for a folder without tables, one of a newer lab, and an unknown table."""
    manifest = Path(folder) / MANIFEST
    try:
        found = msgspec.json.decode(manifest.read_bytes(), type=Published)
    except (OSError, msgspec.DecodeError) as error:
        raise TablesError(f"{manifest} cannot be read: {error}; `rebalance-lab tables` writes it") from error
    if found.schema_version > SCHEMA_VERSION:
        raise TablesError(
            f"{manifest} has schema {found.schema_version}; this lab reads up to {SCHEMA_VERSION}: update it"
        )
    if table not in TABLES:
        raise TablesError(f"there is no table {table}; there are: {', '.join(TABLES)}")
    return spark.read.schema(TABLES[table].schema).parquet(str(Path(folder) / table))
