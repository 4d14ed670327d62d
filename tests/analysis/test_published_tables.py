"""Published tables: what is in them, who can read them, and that nothing half-written is ever seen. The programs of
docs/tables.md read them as they stand."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import duckdb
import msgspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertSchemaEqual
from small_disk import small_disk
from stored_trials import random_history, store_history

from rebalance_lab.analysis import published as published_module
from rebalance_lab.analysis.analyse import analyse
from rebalance_lab.analysis.errors import TablesError
from rebalance_lab.analysis.frames import object_of, rows_of
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.published import (
    MANIFEST,
    SCHEMA_VERSION,
    TABLES,
    Published,
    publish,
    read_table,
)
from rebalance_lab.analysis.results import (
    Analysis,
    Episode,
    Fit,
    HerdCost,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.store import read_store
from rebalance_lab.history.files import TRIAL_FILE, load
from rebalance_lab.history.intervals import ownership_intervals
from rebalance_lab.trials import api

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()

#: Heading -> program.
PROGRAMS = {
    section.partition("\n")[0]: program
    for section in PAGE.split("\n## ")
    for program in re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
}

VECTORS = Path(__file__).parents[1] / "vectors" / "tables-1"

#: The most rows of a file in these tests.
FILE_ROWS = 3_000


#: The first test waits until all tables are written.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials of groups and of a cluster, one that cannot be read, and one that was cut off."""
    path = tmp_path_factory.mktemp("place") / "trials"
    for scenario in ("zombie", "crash", "isr-election"):
        api.run(api.make_plan(scenario, world="simulated"), path)
    for back_off, stop in itertools.product(("500", "2000"), ("0", "100")):
        settings = {"members": "4", "rebalance_backoff_ms": back_off, "fetcher_stop_ms": stop}
        api.run(api.make_plan("herd", world="simulated", settings=settings), path)
    (store_history(path, random_history("broken", 5)) / TRIAL_FILE).write_bytes(b"{")
    (store_history(path, random_history("cut", 4)) / TRIAL_FILE).unlink()
    return path


@pytest.fixture(scope="module")
def tables(store: Path, local_spark: Any) -> Path:
    out = store.parent / "tables"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published_module, "FILE_ROWS", FILE_ROWS)
        publish(local_spark.session, read_store(store), read_ledger(), out)
    return out


@pytest.fixture(scope="module")
def analysis(store: Path, local_spark: Any) -> Analysis:
    return analyse(store, spark=local_spark.session, intervals_for=())


def rows(spark: SparkSession, tables: Path, name: str) -> list[dict[str, Any]]:
    return rows_of(read_table(spark, tables, name))


@pytest.mark.parametrize("name", TABLES)
def test_every_reader_sees_the_declared_columns(spark: SparkSession, tables: Path, name: str) -> None:
    declared = TABLES[name].schema
    own, plain = read_table(spark, tables, name), spark.read.parquet(str(tables / name))
    for frame in (own, plain):
        assertSchemaEqual(frame.schema, declared, ignoreNullable=True)
    in_duckdb = duckdb.sql(f"SELECT * FROM '{tables}/{name}/**/*.parquet'")
    in_pandas = pd.read_parquet(tables / name)
    assert in_duckdb.columns == declared.fieldNames()
    assert list(in_pandas.columns) == declared.fieldNames()
    count = own.count()
    assert count == plain.count() == len(in_pandas) == len(in_duckdb.fetchall()) > 0
    found = msgspec.json.decode((tables / MANIFEST).read_bytes(), type=Published).tables[name]
    assert (found.rows, list(found.columns)) == (count, declared.fieldNames())


def test_they_hold_what_the_commands_show(spark: SparkSession, tables: Path, analysis: Analysis) -> None:
    shown: dict[str, tuple[type[Any], tuple[Any, ...]]] = {
        "findings": (TrialOutcome, analysis.outcomes),
        "measures": (TrialMeasures, analysis.measures),
        "episodes": (Episode, analysis.episodes),
        "herd_costs": (HerdCost, analysis.herd_costs),
        "fits": (Fit, analysis.fits),
        "summaries": (Summary, analysis.summaries),
        "verdicts": (Verdict, analysis.verdicts),
    }
    for name, (kind, expected) in shown.items():
        found = [object_of(kind, {"replay": None} | row) for row in rows(spark, tables, name)]
        assert sorted(found, key=repr) == sorted((without_command(each) for each in expected), key=repr), name
        assert expected, name
    assert {row["trial"]: row["seed"] for row in rows(spark, tables, "trials")} == {
        trial.id: trial.seed for trial in analysis.trials
    }


def without_command(row: Any) -> Any:
    return replace(row, replay=None) if isinstance(row, Verdict) else row


def test_events_and_intervals_are_those_of_the_histories(spark: SparkSession, store: Path, tables: Path) -> None:
    counts = {row["trial"]: row["events"] for row in rows(spark, tables, "trials")}
    intervals = [row["trial"] for row in rows(spark, tables, "intervals")]
    events = rows(spark, tables, "events")
    for trial, count in counts.items():
        history = load(store / trial)
        found = [(row["at_us"], row["actor"], row["n"]) for row in events if row["trial"] == trial]
        assert sorted(found) == [(event.at_us, *event.id) for event in history.events]
        assert count == len(history.events)
        assert intervals.count(trial) == len(ownership_intervals(history)) > 0


def test_a_filter_reads_only_its_folders(spark: SparkSession, tables: Path) -> None:
    frame = spark.read.parquet(str(tables / "events")).where("scenario = 'crash' AND world = 'simulated'")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert re.search(r"PartitionFilters: \[[^]]*\(scenario#\d+ = crash\)[^]]*\(world#\d+ = simulated\)", plan), plan
    assert {path.parent.relative_to(tables / "events").parts[0] for path in (tables / "events").rglob("*.parquet")} == {
        f"scenario={name}" for name in ("crash", "herd", "isr-election", "zombie")
    }


def test_files_have_a_sensible_size(tables: Path) -> None:
    """Large tables are cut, each file in order; small ones have one file for each scenario and world."""
    files = [pq.ParquetFile(file).read().to_pylist() for file in (tables / "events").rglob("*.parquet")]
    assert max(map(len, files)) <= FILE_ROWS < sum(map(len, files))
    for file in files:
        order = [(row["trial"], row["at_us"], row["actor"], row["n"]) for row in file]
        assert order == sorted(order)
    assert len(list((tables / "trials").rglob("*.parquet"))) == 4
    assert not [file for file in tables.rglob("*") if file.is_file() and file.suffix not in (".parquet", ".json")]


def test_what_is_left_out_is_named(tables: Path) -> None:
    found = msgspec.json.decode((tables / MANIFEST).read_bytes(), type=Published)
    assert ([each.trial for each in found.left_out], found.cut_off) == (["broken"], ("cut",))
    assert (found.schema_version, found.whole) == (SCHEMA_VERSION, False)


# -- versions -------------------------------------------------------------------------------------


def test_files_without_a_later_column_stay_readable(spark: SparkSession, tables: Path, tmp_path: Path) -> None:
    shutil.copytree(tables, tmp_path / "older")
    for file in (tmp_path / "older" / "trials").rglob("*.parquet"):
        table = pq.ParquetFile(file).read()
        pq.write_table(table.drop_columns(["plant"]), file)
    found = read_table(spark, tmp_path / "older", "trials")
    assertSchemaEqual(found.schema, TABLES["trials"].schema, ignoreNullable=True)
    assert {row["plant"] for row in rows_of(found)} == {None}
    assert {row["scenario"] for row in rows_of(found)} == {"crash", "herd", "isr-election", "zombie"}


@pytest.mark.parametrize("name", TABLES)
def test_the_files_of_version_1_stay_readable(spark: SparkSession, name: str) -> None:
    """They were written by the first lab that had tables (tests/vectors/tables-1)."""
    then = msgspec.json.decode((VECTORS / MANIFEST).read_bytes(), type=Published)
    if name not in then.tables:
        with pytest.raises(TablesError, match=f"has no table {name}: rebalance-lab {then.lab} wrote it"):
            read_table(spark, VECTORS, name)
        return
    frame = read_table(spark, VECTORS, name)
    assert frame.count() == then.tables[name].rows
    now = {field.name: field for field in TABLES[name].schema.fields}
    before = then.tables[name].columns
    assert {column: now[column].dataType.simpleString() for column in before} == before
    assert [column for column in now.keys() - before.keys() if not now[column].nullable] == []
    assert then.schema_version < SCHEMA_VERSION or before.keys() == now.keys(), "raise SCHEMA_VERSION"


@pytest.mark.parametrize(
    ("manifest", "table", "told"),
    [
        (None, "trials", r"tables\.json cannot be read"),
        ("{", "trials", r"tables\.json cannot be read"),
        ("of a newer lab", "trials", r"has schema 99; this lab reads up to \d+: update it"),
        ("sound", "nothing", "there is no table nothing; there are: trials, findings, events"),
    ],
)
def test_what_cannot_be_read_is_told(
    spark: SparkSession, tables: Path, tmp_path: Path, manifest: str | None, table: str, told: str
) -> None:
    sound = (tables / MANIFEST).read_text()
    newer = sound.replace(f'"schema_version": {SCHEMA_VERSION}', '"schema_version": 99')
    if manifest is not None:
        (tmp_path / MANIFEST).write_text({"sound": sound, "of a newer lab": newer}.get(manifest, manifest))
    with pytest.raises(TablesError, match=told):
        read_table(spark, tmp_path, table)


# -- nothing half-written -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda out: out.symlink_to("nowhere")])
def test_nothing_is_overwritten(spark: SparkSession, store: Path, tmp_path: Path, make: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    make(out)
    with pytest.raises(TablesError, match="out exists already; remove it, or choose another folder with --out"):
        publish(spark, read_store(store), read_ledger(), out)
    assert list(tmp_path.iterdir()) == [out]


def test_an_error_leaves_nothing(
    spark: SparkSession, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def fails(folder: Path, _schema: object) -> None:
        written.append(folder)
        assert list(folder.rglob("*.parquet"))
        raise KeyboardInterrupt

    monkeypatch.setattr(published_module, "_written", fails)
    with pytest.raises(KeyboardInterrupt):
        publish(spark, read_store(store), read_ledger(), tmp_path / "out")
    assert len(written) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_spark_writes_leaves_nothing(
    spark: SparkSession, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks would go on after the signal, and make the folder again."""
    writers: list[Thread] = []

    def interrupted(folder: Path, _schema: object) -> None:
        place = folder.parent / "slow"
        rows = spark.range(0, 4000, 1, 4000).selectExpr("java_method('java.lang.Thread', 'sleep', 5L)", "id")
        writers.append(Thread(target=_written_somehow, args=(rows, place)))
        writers[0].start()
        give_up = monotonic() + 60
        while not any(place.rglob("*.parquet")):
            assert monotonic() < give_up
            sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(published_module, "_written", interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish(spark, read_store(store), read_ledger(), tmp_path / "out")
    writers[0].join(60)
    assert not writers[0].is_alive()
    assert list(tmp_path.iterdir()) == []


def _written_somehow(rows: DataFrame, place: Path) -> None:
    with suppress(PySparkException, Py4JError):
        rows.write.parquet(str(place))


def test_a_place_that_cannot_be_written_is_told(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TablesError, match=r"file/out cannot be written: .*; choose another folder with --out"):
        publish(spark, read_store(store), read_ledger(), tmp_path / "file" / "out")


def test_a_full_disk_is_told(spark: SparkSession, store: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        with pytest.raises(TablesError, match="out was not written: no space is left on its disk"):
            publish(spark, read_store(store), read_ledger(), disk / "out")
        assert list(disk.iterdir()) == []


# -- the page --------------------------------------------------------------------------------------


def ran(program: str, place: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=place, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_table_is_on_the_page() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == tuple(TABLES)
    assert list(PROGRAMS) == ["PySpark", "DuckDB", "pandas", "Histories without tables"]


def test_which_settings_make_rebalances_slow_takes_ten_lines_of_pyspark(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has a Spark; its JVM is in another folder."""
    program = PROGRAMS["PySpark"]
    assert len([line for line in program.splitlines() if line]) == 10
    exec(program.replace('"tables/', f'"{tables}/'), {})
    told = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told if "|" in line]
    assert rows[0] == ["scenario", "setting", "fastest", "slowest", "difference_s"]
    slow = {(row[0], row[1]): row[2:] for row in rows[1:]}
    assert set(slow) == {("herd", "fetcher_stop_ms"), ("herd", "rebalance_backoff_ms")}
    assert slow["herd", "fetcher_stop_ms"][:2] == ["0", "100"]
    assert slow["herd", "rebalance_backoff_ms"][:2] == ["500", "2000"]
    assert all(float(row[2]) > 0.2 for row in slow.values())


def test_duckdb_reads_them(tables: Path) -> None:
    told = ran(PROGRAMS["DuckDB"], tables.parent)
    assert re.search(r"herd +│ \w+ +│ \w+ +│ +\d+", told)


def test_pandas_reads_them(tables: Path) -> None:
    told = ran(PROGRAMS["pandas"], tables.parent)
    assert re.search(r"^zombie-simulated-described-s1 +\d+\.\d+ +[1-9]\d*\.\d+", told, re.MULTILINE)


@pytest.mark.slow
def test_histories_are_read_where_they_are(tables: Path) -> None:
    told = ran(PROGRAMS["Histories without tables"], tables.parent)
    assert told.count("|crash-simulated-described-s1|") == told.count('"path":') > 3
