"""A store's events as Parquet: written once, read as often as tables need them.

They are in the store's folder `.parquet`: part files (schema EVENTS) and a `manifest.json`. A trial's events lie
together in one part, in merge order, in row groups of their own, so that Spark can read columns of all trials and the
checks one trial at a time. The manifest records what each trial's files looked like; `parquet_of` writes new and
changed trials, and drops the parts of deleted ones. Nothing else needs the folder: it may be deleted at any time.

If another command holds the folder, if it cannot be written or its disk is full, the Parquet is made for this run only,
in Spark's scratch folder. Histories pass through Spark's workers, one trial at a time; the driver holds none.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StringType, StructType

from rebalance_lab.analysis.arrow_events import event_batches
from rebalance_lab.analysis.frames import arrow_schema, arrow_table, dealt, rows_of, schema_of, table
from rebalance_lab.analysis.results import LeftOut
from rebalance_lab.analysis.session import cores_of
from rebalance_lab.analysis.store import Store, trial_row
from rebalance_lab.analysis.tables.schemas import EVENTS, HISTORIES, column
from rebalance_lab.analysis.uri import literal
from rebalance_lab.analysis.workers import Row, map_rows, why_left_out
from rebalance_lab.history.disk import is_for_want_of_space
from rebalance_lab.history.files import digest, load, write_whole

FOLDER = ".parquet"
MANIFEST = "manifest.json"

#: The recorded bytes of one part: some hundred thousand events, or ten megabytes of Parquet.
PART_BYTES = 128 << 20

#: With more parts than this, and than twice those that their bytes need, all are written anew, because many small
#: changes leave many small parts.
PARTS_LIMIT = 64

#: Identifies the layout and the columns. A folder with another value is not used.
LAYOUT = hashlib.sha256(b"1 " + EVENTS.json().encode()).hexdigest()[:16]

_COMPRESSION = "zstd"

#: What a task is given: the trials of a part.
_TRIAL = StructType([column("trial", StringType()), column("folder", StringType()), column("looks", StringType())])
_PARTS = StructType([column("trials", ArrayType(_TRIAL, False))])


@dataclass(frozen=True, slots=True)
class Entry:
    """One trial in the Parquet. `looks`: of its files when it was read; `part`: file name;
    `first_group`, `groups`: its row groups there, none for a trial without events."""

    trial: str
    looks: str
    part: str
    history_sha256: str
    events: int
    first_group: int
    groups: int


#: What a task returns of each trial. `why_left_out`: why it could not be read; then the Entry has no meaning.
_WRITTEN = StructType([*schema_of(Entry).fields, column("why_left_out", StringType(), null=True)])


class Manifest(msgspec.Struct, frozen=True):
    layout: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Parquet:
    """The events of a store's trials. Use it while `parquet_of` is open. `left_out`: trials whose events cannot be
    read; they have no entry."""

    spark: SparkSession
    store: Store
    folder: Path
    entries: dict[str, Entry]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def events(self) -> DataFrame:
        """All events, schema EVENTS, in no order."""
        parts = sorted({entry.part for entry in self.entries.values() if entry.groups})
        if not parts:
            return self.spark.createDataFrame([], EVENTS)
        return self.spark.read.schema(EVENTS).parquet(*(literal(self.folder / part) for part in parts))

    @property
    def histories(self) -> DataFrame:
        """The table of `rows`, schema HISTORIES."""
        return table(self.spark, self.rows, HISTORIES)

    @property
    def rows(self) -> list[Row]:
        """One row a trial, with the place of its events. Trials of one part are neighbours, so that a task opens few
        parts."""
        rows = []
        trials = [(trial, self.entries[trial.id]) for trial in self.store.trials if trial.id in self.entries]
        for trial, entry in sorted(trials, key=lambda each: (each[1].part, each[1].first_group, each[1].trial)):
            place: Row = {
                "history_sha256": entry.history_sha256,
                "folder": str(self.store.folders[trial.id].resolve()),
                "looks": entry.looks,
                "part": str(self.folder / entry.part),
                "first_group": entry.first_group,
                "groups": entry.groups,
            }
            rows.append(trial_row(trial) | place)
        return rows


@contextmanager
def parquet_of(spark: SparkSession, store: Store) -> Iterator[Parquet]:
    """The store's Parquet, brought up to date."""
    with ExitStack() as stack:
        folder = stack.enter_context(_own(store.path / FOLDER))
        refreshed = None if folder is None else _refresh_if_space(spark, store, folder)
        if folder is None or refreshed is None:
            scratch = tempfile.TemporaryDirectory(prefix="parquet-", dir=scratch_of(spark))
            folder = Path(stack.enter_context(scratch))
            refreshed = _refresh(spark, store, folder)
        # The whole path, because a cluster's workers have folders of their own.
        yield Parquet(spark, store, folder.resolve(), *refreshed)


@contextmanager
def _own(folder: Path) -> Iterator[Path | None]:
    """Lock the folder for this process. Gives None if another process has it, or if it cannot be written."""
    try:
        folder.mkdir(exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        yield None
        return
    try:
        yield folder
    finally:
        os.close(lock)


def scratch_of(spark: SparkSession) -> Path | None:
    """Spark's own scratch folder, which goes when it goes. None where it has none: then the system's is used."""
    folder = Path(spark.conf.get("spark.local.dir", "") or "/nowhere")
    return folder if folder.is_dir() else None


#: The trials in the Parquet, and those that could not be read.
_Refreshed = tuple[dict[str, Entry], tuple[LeftOut, ...]]


def _refresh_if_space(spark: SparkSession, store: Store, folder: Path) -> _Refreshed | None:
    """None if the disk is full. What was there before is left; nothing is added."""
    before = set(folder.iterdir())
    try:
        return _refresh(spark, store, folder)
    except Exception as error:  # of this process or of Spark's
        if not is_for_want_of_space(error, folder):
            raise
        for part in set(folder.iterdir()) - before:
            part.unlink()
        return None


def _refresh(spark: SparkSession, store: Store, folder: Path) -> _Refreshed:
    kept = _still_good(folder, store.seen)
    fresh = {name: path for name, path in store.folders.items() if name not in kept}
    left_out: list[LeftOut] = []
    if fresh:
        written, left_out = _write(spark, fresh, store.seen, folder)
        kept |= {entry.trial: entry for entry in written}
    used = {entry.part for entry in kept.values()}
    stale = [path for path in folder.glob("*.parquet*") if path.name not in used]
    if fresh or stale:
        manifest = Manifest(LAYOUT, tuple(kept[name] for name in sorted(kept)))
        write_whole(folder / MANIFEST, msgspec.json.encode(manifest))
    for path in stale:
        path.unlink()
    return kept, tuple(left_out)


def _still_good(folder: Path, seen: dict[str, tuple[str, int]]) -> dict[str, Entry]:
    """The entries of parts of which every trial is still there and looks the same."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return {}
    if manifest.layout != LAYOUT:
        return {}
    bad = {each.part for each in manifest.entries if seen.get(each.trial, ("", 0))[0] != each.looks}
    bad |= {each.part for each in manifest.entries if not (folder / each.part).is_file()}
    good = {each.trial: each for each in manifest.entries if each.part not in bad}
    needed = -(-sum(seen[name][1] for name in good) // PART_BYTES)
    return good if len({each.part for each in good.values()}) <= max(PARTS_LIMIT, 2 * needed) else {}


def _write(
    spark: SparkSession, folders: dict[str, Path], seen: dict[str, tuple[str, int]], folder: Path
) -> tuple[list[Entry], list[LeftOut]]:
    """Have Spark's workers write these trials, a part a task. Those that cannot be read are left out."""
    parts = _dealt({name: seen[name][1] for name in folders}, cores_of(spark))
    rows = [
        {"trials": [{"trial": name, "folder": str(folders[name].resolve()), "looks": seen[name][0]} for name in names]}
        for names in parts
    ]
    target = str(folder.resolve())

    def write(row: Row) -> list[Row]:
        return write_part(row["trials"], Path(target))

    written = map_rows(dealt(spark, arrow_table(rows, _PARTS), _PARTS, len(parts)), _WRITTEN, write)
    entries, left_out = [], []
    for row in rows_of(written):
        why = row.pop("why_left_out")
        if why is None:
            entries.append(Entry(**row))
        else:
            left_out.append(LeftOut(row["trial"], why))
    return entries, left_out


def _dealt(sizes: dict[str, int], cores: int) -> list[list[str]]:
    """Trials dealt to parts of about equal bytes, the largest first."""
    count = min(len(sizes), max(cores, -(-sum(sizes.values()) // PART_BYTES)))
    parts: list[list[str]] = [[] for _ in range(count)]
    filled = [0] * count
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        least = filled.index(min(filled))
        parts[least].append(name)
        filled[least] += sizes[name]
    return [sorted(part) for part in parts]


def write_part(trials: Sequence[dict[str, str]], folder: Path) -> list[Row]:
    """Write one part with these trials (rows of trial, folder, looks): rows of _WRITTEN."""
    name = f"{uuid.uuid4().hex}.parquet"
    written: list[Row] = []
    group = 0
    unfinished = folder / f"{name}.part"
    try:
        with pq.ParquetWriter(unfinished, arrow_schema(EVENTS), compression=_COMPRESSION) as writer:
            for trial in trials:
                known = {"trial": trial["trial"], "looks": trial["looks"], "part": name, "first_group": group}
                try:
                    history = load(Path(trial["folder"]))
                except Exception as error:  # whatever it is, the other trials can be read
                    why = why_left_out(error, f"the events of {trial['folder']}")
                    written.append({**known, "history_sha256": "", "events": 0, "groups": 0, "why_left_out": why})
                    continue
                groups = 0
                for batch in event_batches(trial["trial"], history.events):
                    writer.write_batch(batch)
                    groups += 1
                group += groups
                sha256 = history.trial.history_sha256 or digest(history.events)
                found = {"history_sha256": sha256, "events": len(history.events), "groups": groups}
                written.append({**known, **found, "why_left_out": None})
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    shutil.move(unfinished, folder / name)
    return written
