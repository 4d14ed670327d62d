"""A store at a URI. `file:` stands for other file systems here; tier `cluster` has HDFS."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from stored_trials import random_history, store_history
from thorough import only_thorough

from rebalance_lab.analysis import file_systems, published, remote_store
from rebalance_lab.analysis.errors import TablesError
from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.published import TABLES, publish, read_table
from rebalance_lab.analysis.remote_store import STORED, open_store, stored_row, storing
from rebalance_lab.analysis.results import LeftOut
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.summarised import WORKER_ENDED
from rebalance_lab.analysis.uri import StoreUri
from rebalance_lab.analysis.workers import Row
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import Check, Finding, Outcome
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History, digest, load

NAMES = ("t000", "t001", "t002")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on this machine."""
    store = tmp_path_factory.mktemp("here")
    for seed, name in enumerate(NAMES, start=3):
        store_history(store, sealed(random_history(name, seed)))
    return store


def sealed(history: History) -> History:
    return History(msgspec.structs.replace(history.trial, history_sha256=digest(history.events)), history.events)


@pytest.fixture
def uri(spark: SparkSession, folder: Path, tmp_path: Path) -> Iterator[StoreUri]:
    """The same store at a URI, judged by the code of today."""
    vectorized = spark.conf.get("spark.sql.parquet.enableVectorizedReader")
    at = StoreUri(f"file://{tmp_path}/trials")
    add(spark, at, [row_of(folder / name) for name in NAMES])
    yield at
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)


def row_of(trial: Path, **changed: Any) -> Row:
    return stored_row(trial, load(trial), None) | changed


def add(spark: SparkSession, uri: StoreUri, rows: list[Row]) -> None:
    storing(uri)(table(spark, rows, STORED))


def results(spark: SparkSession, uri: StoreUri, **options: bool) -> tuple[list[Row], tuple[LeftOut, ...]]:
    with open_store(spark, uri).judged(**options) as (found, left_out):
        return sorted(rows_of(found), key=lambda row: str(row["trial"])), left_out


def test_a_uri_is_told_from_a_path() -> None:
    assert StoreUri.parse("hdfs://host:8020/trials/") == StoreUri("hdfs://host:8020/trials")
    assert [StoreUri.parse(text) for text in ("trials", "/shared/trials", "a:b", "://x", "")] == [None] * 5


def test_fetched_trials_are_those_of_the_folder(
    spark: SparkSession, uri: StoreUri, folder: Path, tmp_path: Path
) -> None:
    fetched = open_store(spark, uri).fetch(["t000", "t002", "unknown"], tmp_path / "fetched")
    assert sorted(fetched) == ["t000", "t002"]
    for name, place in fetched.items():
        assert load(place) == load(folder / name)


def test_what_was_judged_is_not_judged_again(
    spark: SparkSession, uri: StoreUri, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(spark, uri)
    assert (store.at_once, store.judged_later()) == (set(NAMES), set())
    judged_before = results(spark, uri)
    monkeypatch.setattr(remote_store, "code_that_judges", lambda: "other")
    store = open_store(spark, uri)
    assert (store.at_once, store.judged_later()) == (set(), set())
    assert results(spark, uri) == judged_before
    store = open_store(spark, uri)
    assert (store.at_once, store.judged_later()) == (set(), set(NAMES))
    assert results(spark, uri) == judged_before
    assert results(spark, uri, rejudge=True) == judged_before


def test_what_a_task_judged_is_kept_if_another_task_fails(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker of t001 ends when it sees what the other tasks kept. If it never does, t001 is judged."""
    at = StoreUri(f"file://{tmp_path}/trials")
    for name in NAMES:  # a file for each trial, and so a task
        add(spark, at, [row_of(folder / name)])

    def kept() -> set[str]:
        files = (tmp_path / "trials" / "judged").glob("code=*/run=*/*.parquet")
        return {name for file in files for name in pq.read_table(file, columns=["trial"])["trial"].to_pylist()}

    def ends_the_worker_last(history: History) -> Finding:
        if history.trial.id == "t001":
            limit = time.monotonic() + 30
            while time.monotonic() < limit:
                if kept() == {"t000", "t002"}:
                    os._exit(1)
                time.sleep(0.05)
        return Finding(Outcome.CLEAN, "it lives", (), {})

    check = Check("ends_the_worker_last", (Layer.OP,), "", (), ends_the_worker_last, applies_to=("zk",))
    monkeypatch.setitem(CHECKS, check.name, check)
    monkeypatch.setattr(remote_store, "code_that_judges", lambda: "other")
    with open_store(spark, at).judged() as (found, left_out):
        assert left_out == (LeftOut("t001", WORKER_ENDED),)
        assert {row["trial"] for row in rows_of(found)} == {"t000", "t002"}
    assert open_store(spark, at).judged_later() == {"t000", "t002"}
    files = (tmp_path / "trials" / "judged").glob("code=*/run=*/*.parquet")
    kept_rows = [name for file in files for name in pq.read_table(file, columns=["trial"])["trial"].to_pylist()]
    assert sorted(kept_rows) == ["t000", "t002"]  # neither was judged again in the search for the fatal one


def test_a_store_that_cannot_be_written_is_judged_all_the_same(
    spark: SparkSession,
    uri: StoreUri,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    judged = results(spark, uri)
    (tmp_path / "trials" / "judged").touch()  # not even root can make a folder in a file
    monkeypatch.setattr(remote_store, "code_that_judges", lambda: "other")
    assert results(spark, uri) == judged
    assert "what is judged now is not kept" in caplog.text


def test_a_judgement_that_failed_in_a_sweep_is_tried_again(spark: SparkSession, uri: StoreUri, folder: Path) -> None:
    row = row_of(folder / "t001")
    add(spark, uri, [row | {"judged": row["judged"] | {"why_left_out": "out of memory"}}])
    assert open_store(spark, uri).at_once == {"t000", "t002"}
    rows, left_out = results(spark, uri)
    assert ([row["trial"] for row in rows], left_out) == (list(NAMES), ())


def test_a_store_may_have_a_name_that_is_a_pattern_to_spark(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    """`{a,b} [1]` would match `a 1`, where another store is."""
    wanted, other = (StoreUri(f"file://{tmp_path}/{name}") for name in ("{a,b} [1]", "a 1"))
    add(spark, wanted, [row_of(folder / "t000") | {"code": "other"}])
    add(spark, other, [row_of(folder / "t001")])
    store = open_store(spark, wanted)
    assert [trial.id for trial in store.trials] == ["t000"]
    for _ in range(2):  # judged now, and then read
        assert [row["trial"] for row in results(spark, wanted)[0]] == ["t000"]
    assert store.judged_later() == {"t000"}
    assert list(store.fetch(["t000"], tmp_path / "fetched")) == ["t000"]
    publish(spark, wanted, read_ledger(), StoreUri(f"{wanted}/tables"))
    assert rows_of(read_table(spark, StoreUri(f"{wanted}/tables"), "trials").select("trial")) == [{"trial": "t000"}]


@pytest.mark.parametrize("name", ["../evil", "/evil", ".", "..", ""])
def test_an_id_that_is_no_name_of_a_folder_is_left_out(
    spark: SparkSession, uri: StoreUri, folder: Path, name: str
) -> None:
    add(spark, uri, [row_of(folder / "t000") | {"trial": name}])
    store = open_store(spark, uri)
    assert [trial.id for trial in store.trials] == list(NAMES)
    assert [(each.trial, "no folder can have this name" in each.why) for each in store.left_out] == [(name, True)]


def test_no_file_is_read_for_other_trials(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    at = StoreUri(f"file://{tmp_path}/trials")
    for name in NAMES:
        add(spark, at, [row_of(folder / name)])
    store = open_store(spark, at)
    assert len(store._rows(["t001"]).inputFiles()) == 1
    assert len(store._rows(NAMES).inputFiles()) == len(NAMES)
    assert store._rows([]).count() == 0


def test_a_task_need_not_hold_all_trials_of_a_file(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    large = row_of(folder / "t000") | {"events": os.urandom(10 << 20)}  # nothing that compresses
    add(spark, StoreUri(f"file://{tmp_path}/trials"), [large | {"trial": name} for name in ("a", "b", "c", "d")])
    groups = [pq.read_metadata(file).num_row_groups for file in tmp_path.rglob("*.parquet")]
    assert sum(groups) > len(groups)


def test_of_two_commands_that_write_the_same_tables_one_does(spark: SparkSession, uri: StoreUri) -> None:
    """The other neither writes there nor removes what the first has written."""
    out = StoreUri(f"{uri}/tables")
    with published._at(spark, out) as first, pytest.MonkeyPatch.context() as patch:
        file_systems.write(spark, first / "a", b"1")
        patch.setattr(file_systems, "exists", lambda *_: False)  # it looked before the first began
        with pytest.raises(TablesError, match="is being written by another command"), published._at(spark, out):
            raise AssertionError("it was let in")
    assert file_systems.read(spark, out / "a") == b"1"
    assert not file_systems.exists(spark, out / published.WRITING)


def test_two_commands_that_judge_the_same_trials_give_them_once(
    spark: SparkSession, uri: StoreUri, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_store, "code_that_judges", lambda: "other")
    stores = [open_store(spark, uri) for _ in range(2)]  # both find nothing judged
    for store in stores:
        with store.judged() as (found, _):
            assert found.count() == len(NAMES)
    rows, _ = results(spark, uri)
    assert [row["trial"] for row in rows] == list(NAMES)


def test_of_a_trial_that_was_run_again_the_newest_counts(
    spark: SparkSession, uri: StoreUri, folder: Path, tmp_path: Path
) -> None:
    other = store_history(tmp_path / "again", sealed(random_history("t001", 77)))
    add(spark, uri, [row_of(other)])
    add(spark, uri, [row_of(folder / "t002", written_us=1)])  # an older one, written late
    rows, left_out = results(spark, uri)
    assert [row["trial"] for row in rows] == list(NAMES)
    assert not left_out
    assert rows[1]["history_sha256"] == load(other).trial.history_sha256
    assert load(open_store(spark, uri).fetch(["t001"], tmp_path / "one")["t001"]) == load(other)


def test_a_row_that_was_changed_is_left_out(spark: SparkSession, uri: StoreUri, folder: Path) -> None:
    good = row_of(folder / "t000")
    fewer = good["events"][: good["events"].index(b"\n") + 1]
    document = json.loads(good["document"]) | {"seed": 12345}
    changes = [{"trial": "t008", "events": fewer}, {"trial": "t009", "document": json.dumps(document)}]
    add(spark, uri, [good | change | {"code": "other"} for change in changes])
    store = open_store(spark, uri)
    assert {row["trial"] for row in rows_of(store.events.select("trial").distinct())} == set(NAMES)
    assert [each.trial for each in store.left_out] == ["t009"]
    assert "was changed after it was sealed" in store.left_out[0].why
    rows, left_out = results(spark, uri)
    assert [row["trial"] for row in rows] == list(NAMES)
    assert [each.trial for each in left_out] == ["t008"]
    assert "was changed after it was sealed" in left_out[0].why


@pytest.mark.slow
@only_thorough
def test_the_tables_are_those_of_the_folder(spark: SparkSession, uri: StoreUri, folder: Path, tmp_path: Path) -> None:
    out = StoreUri(f"file://{tmp_path}/tables")
    there = publish(spark, uri, read_ledger(), out)
    here = publish(spark, read_store(folder), read_ledger(), tmp_path / "here")
    assert {name: each.rows for name, each in there.tables.items()} == {
        name: each.rows for name, each in here.tables.items()
    }
    assert there.tables["events"].rows > 0
    for name in TABLES:
        ours, theirs = (
            sorted(map(repr, rows_of(read_table(spark, place, name)))) for place in (out, tmp_path / "here")
        )
        assert ours == theirs
    with pytest.raises(TablesError, match="exists already"):
        publish(spark, uri, read_ledger(), out)


@pytest.mark.slow
@only_thorough
def test_tables_that_fail_leave_nothing(
    spark: SparkSession, uri: StoreUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = StoreUri(f"file://{tmp_path}/tables")

    def broken(*_: object) -> None:
        raise OSError("no way")

    monkeypatch.setattr(file_systems, "write", broken)
    with pytest.raises(TablesError, match="was not written: no way"):
        publish(spark, uri, read_ledger(), out)
    assert not file_systems.exists(spark, out)


def test_a_file_system_that_nobody_knows_is_told(spark: SparkSession) -> None:
    with pytest.raises(OSError, match=r"nowhere://x/trials/histories cannot be reached: .*nowhere"):
        open_store(spark, StoreUri("nowhere://x/trials"))
