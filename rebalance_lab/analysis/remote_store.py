"""A store at a URI (`StoreUri`), for clusters whose workers share no disk.

Its folder `histories` is Parquet with a row for each trial (STORED): `trial.json`, the events as one text, and what was
found in them. Spark reads and writes it, so it may lie wherever Spark's file systems reach; a worker needs no client of
its own. A file holds the trials of a task, because such file systems are slow with many small ones. Each wave of a
sweep adds a folder of its own, and nothing is ever changed: if a trial was run again, its newest row counts.

What is judged later, by other code, goes to the folder `judged`, in a folder for each code and run. Both folders are in
Hive's layout.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from rebalance_lab.analysis import file_systems
from rebalance_lab.analysis.arrow_events import event_batches
from rebalance_lab.analysis.frames import each_row, plain_row, rows_of, table
from rebalance_lab.analysis.kept import code_that_judges
from rebalance_lab.analysis.results import LeftOut
from rebalance_lab.analysis.store import named_as, trial_row
from rebalance_lab.analysis.summarised import WORKER_ENDED_IN_SPARK, judged_by
from rebalance_lab.analysis.tables.schemas import EVENTS, TRIALS, column
from rebalance_lab.analysis.tables.trial_results import (
    INTERVALS,
    JUDGED,
    NOT_JUDGED,
    RESULTS,
    trial_results,
)
from rebalance_lab.analysis.tally import count_one, tally_of
from rebalance_lab.analysis.trialwise.judged import judgement
from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.analysis.uri import StoreUri, literal
from rebalance_lab.analysis.workers import Driver, Row, map_rows, settle_worker, why_left_out
from rebalance_lab.checks.model import Finding
from rebalance_lab.history.files import (
    TRIAL_FILE,
    History,
    HistoryError,
    Trial,
    canonical,
    must_be_sealed,
    parse_events,
    parse_trial,
)
from rebalance_lab.history.scratch import replacing

_log = logging.getLogger(__name__)

HISTORIES_FOLDER, JUDGED_FOLDER = "histories", "judged"

#: The name of a fetched trial's file of events.
EVENTS_FILE = "events.jsonl"

#: Which row of `histories` it is: a trial may have been run again.
_KEY = StructType([column("trial", StringType()), column("written_us", LongType())])

#: Where that row is. `file`: its path.
_PLACE = StructType([*_KEY.fields, column("file", StringType())])

#: One row a trial. `written_us`: since 1970. `document`: `trial.json`. `events`: what `history_sha256` covers.
#: `code`: of the code that judged it (`kept.code_that_judges`), empty if that is not known; `judged`: what it found.
STORED = StructType(
    [
        *_KEY.fields,
        column("document", StringType()),
        column("events", BinaryType()),
        column("code", StringType()),
        column("judged", JUDGED),
    ]
)

#: Rows of `judged`.
_LATER = StructType([*_KEY.fields, column("judged", JUDGED)])

#: JUDGED of a stored row.
_FOUND = StructType([*JUDGED.fields, column("written_us", LongType())])

#: The bytes of a row group before compression. This bounds what a task holds beside the trial that it judges.
_GROUP_BYTES = 16 << 20

#: The bytes of files that a task reads; Spark adds 4 MB for each. So a task has the trials of a few files.
_TASK_BYTES = 16 << 20


def stored_row(folder: Path, history: History, findings: Mapping[str, Finding] | None) -> Row:
    """The row of STORED for a trial that was just stored in a folder. `findings`: of `checks.judge`, if known."""
    return {
        "trial": history.trial.id,
        "written_us": time.time_ns() // 1000,
        "document": (folder / TRIAL_FILE).read_text("utf-8"),
        "events": canonical(history.events),
        "code": code_that_judges() or "",
        "judged": _judged_row(history, findings),
    }


def _judged_row(history: History, findings: Mapping[str, Finding] | None = None) -> Row:
    """The row of JUDGED for a history, or why there is none."""
    trial = history.trial
    given = trial_row(trial) | {"history_sha256": trial.history_sha256}
    row = {name: given[name] for name in RESULTS.fieldNames() if name in given}
    try:
        return row | judgement(history, findings) | {"why_left_out": None}
    except Exception as error:  # whatever it is, the other trials can be judged
        return row | NOT_JUDGED | {"why_left_out": why_left_out(error, f"trial {trial.id}")}


def storing(uri: StoreUri) -> Callable[[DataFrame], None]:
    """A function that adds rows of STORED, a wave of a sweep at a time, to a store."""
    sweep = uuid.uuid4().hex
    waves = iter(range(1_000_000))

    def store(rows: DataFrame) -> None:
        # A folder each, because two jobs that write to one folder remove each other's unfinished files.
        _write(rows, uri / HISTORIES_FOLDER / f"sweep={sweep}" / f"wave={next(waves)}")

    return store


def _write(rows: DataFrame, uri: StoreUri, *, task_by_task: bool = False) -> None:
    """`task_by_task`: the rows of a task are there when it ends, also if another one fails. Otherwise they are moved to
    their place when all tasks have ended. (Hadoop's own committer does so. Those of object stores may move them at the
    end in any case.)"""
    options = {
        "mapreduce.fileoutputcommitter.algorithm.version": "2" if task_by_task else "1",
        "compression": "zstd",
        "parquet.block.size": _GROUP_BYTES,
        "parquet.page.size.row.check.min": 1,  # after how many rows it first asks how large the group is
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    rows.write.options(**options).parquet(str(uri))


@dataclass(frozen=True, slots=True)
class RemoteStore:
    """The trials of a store at a URI, as they are now. `places`: which rows count, as rows of _PLACE. `at_once`: the
    trials that this code judged as they were run. `left_out`: trials that cannot be read. `decoded`: `events`, kept for
    those who read them several times."""

    spark: SparkSession
    uri: StoreUri
    trials: tuple[Trial, ...]
    places: tuple[Row, ...]
    at_once: frozenset[str]
    left_out: tuple[LeftOut, ...]
    cut_off: tuple[str, ...] = ()
    decoded: DataFrame | None = None

    # -- what a store's tables are made of (`published.Source`) ------------------------------------

    @contextmanager
    def judged(self, *, rejudge: bool = False) -> Iterator[tuple[DataFrame, tuple[LeftOut, ...]]]:
        """RESULTS of the trials that can be judged, and the others. What is judged now is kept for the next time,
        unless it is only judged again."""
        judge = self._judged_now if rejudge else self._judge
        with judged_by(judge, [place["trial"] for place in self.places], trial_results) as (results, left_out):
            yield results.select(*RESULTS.fieldNames()), left_out

    @property
    def events(self) -> DataFrame:
        """All events, schema EVENTS, in no order, of the trials that can be read; `judged` names the others. Unless
        `decoded` has them they are decoded each time."""
        if self.decoded is not None:
            return self.decoded
        driver = Driver.here()

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            settle_worker(driver)
            for row in (row for batch in batches for row in batch.to_pylist()):
                if (history := _readable(row)) is not None:
                    yield from event_batches(row["trial"], history.events)

        return self._histories([place["trial"] for place in self.places]).mapInArrow(work, EVENTS)

    @property
    def listed(self) -> DataFrame:
        """The trials, schema TRIALS."""
        return table(self.spark, [trial_row(trial) for trial in self.trials], TRIALS)

    def held_intervals(self, generations: Sequence[str]) -> DataFrame:
        """INTERVALS of the trials of some subjects, by the functions that these registered."""

        def held(row: Row) -> list[Row]:
            history = _readable(row)
            return [] if history is None else [plain_row(each, INTERVALS) for each in intervals_of(history)]

        wanted = [trial.id for trial in self.trials if trial.subject in generations]
        return map_rows(self._histories(wanted), INTERVALS, held)

    # -- for the driver ----------------------------------------------------------------------------

    def fetch(self, trials: Sequence[str], into: Path) -> dict[str, Path]:
        """Write some trials as folders below `into`, as a store on this machine has them. One after the other passes
        through the driver. Those that this store does not have are left out."""
        into.mkdir(parents=True, exist_ok=True)
        return {row["trial"]: _fetched(row, into) for row in self._histories(trials).toLocalIterator()}

    # -- rows ---------------------------------------------------------------------------------------

    def _rows(self, trials: Sequence[str]) -> DataFrame:
        """The rows of STORED of these trials that count. No other file is read."""
        wanted = set(trials)
        chosen = [place for place in self.places if place["trial"] in wanted]
        files = sorted({place["file"] for place in chosen})
        if len(files) == len({place["file"] for place in self.places}):
            rows = _read(self.spark, self.uri)
        elif files:
            rows = self.spark.read.schema(STORED).parquet(*map(literal, files))
        else:
            rows = self.spark.createDataFrame([], STORED)
        return _of(rows, table(self.spark, chosen, _PLACE))

    def _histories(self, trials: Sequence[str]) -> DataFrame:
        return self._rows(trials).select("trial", "document", "events", "written_us")

    def judged_later(self) -> frozenset[str]:
        """The trials that this code has judged by now, after they were run."""
        code = code_that_judges()
        rest = {(place["trial"], place["written_us"]) for place in self.places if place["trial"] not in self.at_once}
        if code is None or not rest or not file_systems.exists(self.spark, _folder_of(self.uri, code)):
            return frozenset()
        judged = rows_of(_judged_later(self.spark, self.uri, code).select(*_KEY.fieldNames()))
        return frozenset(row["trial"] for row in judged if (row["trial"], row["written_us"]) in rest)

    def _judge(self, some: Sequence[str]) -> DataFrame:
        """JUDGED of these trials: what is kept, and what is judged now. What is kept is asked each time, because a job
        that failed has kept what its tasks found before that."""
        later = self.judged_later()
        kept_at_once = [trial for trial in some if trial in self.at_once]
        kept_later = [trial for trial in some if trial in later]
        fresh = [trial for trial in some if trial not in self.at_once and trial not in later]
        frames = [self._judged_and_kept(fresh)] if fresh or not some else []
        if kept_at_once:
            frames.append(self._rows(kept_at_once).select("judged.*"))
        if kept_later and (code := code_that_judges()) is not None:
            keys = table(self.spark, [place for place in self.places if place["trial"] in set(kept_later)], _PLACE)
            frames.append(_of(_judged_later(self.spark, self.uri, code), keys).select("judged.*"))
        return reduce(DataFrame.unionByName, frames)

    def _judged_and_kept(self, trials: Sequence[str]) -> DataFrame:
        """JUDGED of these trials, which are judged now. What a task found is kept when it ends: if the command is
        killed, the next one goes on from there. A store that cannot be written keeps nothing."""
        found = self._judged_now(trials)
        code = code_that_judges()
        if code is None or not trials:
            return found.select(*JUDGED.fieldNames())
        rows = found.select(*_KEY.fieldNames(), F.struct(*JUDGED.fieldNames()).alias("judged"))
        folder = _folder_of(self.uri, code) / f"run={uuid.uuid4().hex}"
        try:
            _write(rows, folder, task_by_task=True)
        except (Py4JJavaError, PySparkException) as error:
            if WORKER_ENDED_IN_SPARK in str(error):
                raise
            why = file_systems.reason(error) if isinstance(error, Py4JJavaError) else str(error).splitlines()[0]
            _log.warning("what is judged now is not kept: %s cannot be written: %s", folder, why)
            return found.select(*JUDGED.fieldNames())
        return self.spark.read.schema(_LATER).parquet(literal(folder)).select("judged.*")

    def _judged_now(self, trials: Sequence[str]) -> DataFrame:
        tally = tally_of(self.spark)

        def judge(row: Row) -> list[Row]:
            found = _found(row)
            count_one(tally)
            return [found | {"written_us": row["written_us"]}]

        return map_rows(self._histories(trials), _FOUND, judge)


def _found(row: Row) -> Row:
    """In a worker: the row of JUDGED for one of STORED."""
    trial = _trial(row)
    try:
        history = _history(row)
    except Exception as error:  # whatever it is, the other trials can be judged
        found = _judged_row(History(trial, ()))
        return found | NOT_JUDGED | {"why_left_out": why_left_out(error, f"trial {trial.id}")}
    return _judged_row(history)


def _trial(row: Row) -> Trial:
    """Raises HistoryError. An id is the name of a folder: those that are fetched get one."""
    if row["trial"] in ("", ".", "..") or "/" in row["trial"] or "\0" in row["trial"]:
        raise HistoryError(f"{row['trial']!r} cannot be the id of a trial: no folder can have this name")
    return named_as(parse_trial(row["document"].encode(), f"{TRIAL_FILE} of {row['trial']}"), row["trial"])


def _fetched(row: Any, into: Path) -> Path:
    """The folder of a trial that is written whole, or not at all. One of the same name goes."""
    folder = into / str(row["trial"])
    with replacing(folder) as part:
        (part / EVENTS_FILE).write_bytes(row["events"])
        (part / TRIAL_FILE).write_text(row["document"], "utf-8")
    return folder


def _readable(row: Row) -> History | None:
    """In a worker: the history of a row, unless it is broken."""
    try:
        return _history(row)
    except HistoryError:
        return None


def _history(row: Row) -> History:
    """Raises HistoryError, also if the events differ from those that were sealed."""
    history = History(_trial(row), tuple(parse_events(row["events"], f"the events of {row['trial']}")))
    must_be_sealed(history, f"the row of {row['trial']}")
    return history


def open_store(spark: SparkSession, uri: StoreUri) -> RemoteStore:
    """Read which trials a store holds, without their events. Raises HistoryError if there is none, OSError if the file
    system cannot be reached."""
    if not file_systems.exists(spark, uri / HISTORIES_FOLDER):
        raise HistoryError(f"{uri} holds no trial; run some: rebalance-lab sweep zombie --master URL --store {uri}")
    # A row at a time: the columnar reader takes 4,096 at once, and a row is a whole trial.
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(_TASK_BYTES))
    code = code_that_judges()
    trials, places, at_once, left_out = [], [], set(), []
    for name, row in sorted(_newest(spark, uri).items()):
        try:
            trials.append(_trial(row))
        except HistoryError as error:
            left_out.append(LeftOut(name, str(error)))
            continue
        places.append({field: row[field] for field in _PLACE.fieldNames()})
        if row["code"] == code and row["why_left_out"] is None:
            at_once.add(name)
    return RemoteStore(spark, uri, tuple(trials), tuple(places), frozenset(at_once), tuple(left_out))


def _newest(spark: SparkSession, uri: StoreUri) -> dict[str, Row]:
    """The row of each trial that counts, without events."""
    rows = _read(spark, uri).select(
        *_KEY.fieldNames(), "document", "code", "judged.why_left_out", F.col("_metadata.file_path").alias("file")
    )
    newest: dict[str, Row] = {}
    for row in each_row(rows):
        known = newest.get(row["trial"])
        if known is None or row["written_us"] > known["written_us"]:
            newest[row["trial"]] = row | {"file": unquote(row["file"])}
    return newest


def _read(spark: SparkSession, uri: StoreUri) -> DataFrame:
    """All rows of STORED, also those that were run again."""
    return spark.read.schema(STORED).option("recursiveFileLookup", "true").parquet(literal(uri / HISTORIES_FOLDER))


def _judged_later(spark: SparkSession, uri: StoreUri, code: str) -> DataFrame:
    """Rows of _LATER by this code, of trials that could be judged. Two commands may have judged the same trial."""
    folder = literal(_folder_of(uri, code))
    rows = spark.read.schema(_LATER).option("recursiveFileLookup", "true").parquet(folder)
    return rows.where("judged.why_left_out IS NULL").dropDuplicates(_KEY.fieldNames())


def _of(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """The rows that have one of these keys."""
    return rows.join(F.broadcast(keys), _KEY.fieldNames(), "left_semi")


def _folder_of(uri: StoreUri, code: str) -> StoreUri:
    return uri / JUDGED_FOLDER / f"code={code}"
