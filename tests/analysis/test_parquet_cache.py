"""The Parquet beside a store: written once, kept up to date, never in the way."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from stored_trials import RandomTrials, random_history, store_history, trial

from rebalance_lab.analysis import parquet as parquet_module
from rebalance_lab.analysis.arrow_events import event_batches, events_of
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.parquet import FOLDER, Manifest, parquet_of
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.schemas import EVENTS, HISTORIES
from rebalance_lab.analysis.tables.trial_results import stored_events
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, digest, load, read_trial, seal


def parts(store: Path) -> set[str]:
    return {path.name for path in (store / FOLDER).glob("*.parquet*")}


def told(spark: SparkSession, store: Path) -> dict[str, list[Event]]:
    """The events of each trial, as its row of HISTORIES finds them."""
    with parquet_of(spark, read_store(store)) as parquet:
        return {row["trial"]: list(stored_events(row)) for row in rows_of(parquet.histories)}


def kept(store: Path) -> dict[str, list[Event]]:
    return {name: list(load(folder).events) for name, folder in read_store(store).folders.items()}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for seed in range(6):
        store_history(tmp_path, random_history(f"t{seed}", seed + 1))
    store_history(tmp_path, History(trial("empty"), ()))
    return tmp_path


def test_every_event_comes_back_as_it_was(random_trials: RandomTrials) -> None:
    parquet = random_trials.parquet
    assert parquet.events.schema.simpleString() == EVENTS.simpleString()
    assert parquet.histories.schema == HISTORIES
    counts = {row["trial"]: row["count"] for row in rows_of(parquet.events.groupBy("trial").count())}
    assert counts == {name: len(each.events) for name, each in random_trials.histories.items() if each.events}
    for row in rows_of(parquet.histories):
        history = random_trials.histories[row["trial"]]
        assert stored_events(row) == history.events
        assert row["history_sha256"] == digest(history.events)


def test_what_has_not_changed_is_not_written_again(spark: SparkSession, store: Path) -> None:
    assert told(spark, store) == kept(store)
    before = parts(store)
    assert len(before) == 2  # one for each core
    assert told(spark, store) == kept(store)
    assert parts(store) == before


def test_trials_that_come_change_or_go_are_noticed(spark: SparkSession, store: Path) -> None:
    told(spark, store)
    before = parts(store)
    store_history(store, random_history("new", 50))
    assert told(spark, store) == kept(store)
    assert before < parts(store)

    shutil.rmtree(store / "t1")
    shutil.rmtree(store / "t2")
    store_history(store, random_history("t2", 51))
    assert told(spark, store) == kept(store)
    assert set(told(spark, store)) == {"empty", "new", "t0", "t2", "t3", "t4", "t5"}

    seal(store / "t3", msgspec.structs.replace(read_trial(store / "t3"), plant="bug"))
    with parquet_of(spark, read_store(store)) as parquet:
        assert {row["trial"]: row["plant"] for row in rows_of(parquet.histories)}["t3"] == "bug"


def test_a_folder_of_another_lab_or_a_broken_one_is_written_anew(spark: SparkSession, store: Path) -> None:
    told(spark, store)
    manifest = store / FOLDER / "manifest.json"
    other = msgspec.structs.replace(msgspec.json.decode(manifest.read_bytes(), type=Manifest), layout="another")
    for text in (msgspec.json.encode(other), b"{"):
        before = parts(store)
        manifest.write_bytes(text)
        (store / FOLDER / "half.parquet.part").write_bytes(b"of a writer that was killed")
        assert told(spark, store) == kept(store)
        assert not parts(store) & before
    next((store / FOLDER).glob("*.parquet")).unlink()
    assert told(spark, store) == kept(store)


def test_many_small_parts_become_few(spark: SparkSession, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "PARTS_LIMIT", 3)
    for seed in range(3):
        store_history(store, random_history(f"later{seed}", seed + 20))
        told(spark, store)
    assert len(parts(store)) == 4
    assert told(spark, store) == kept(store)
    assert len(parts(store)) == 2


def test_many_parts_that_their_bytes_need_stay(
    spark: SparkSession, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_module, "PARTS_LIMIT", 1)
    monkeypatch.setattr(parquet_module, "PART_BYTES", 1)
    told(spark, store)
    before = parts(store)
    assert len(before) == len(kept(store)) > 1
    store_history(store, random_history("later", 20))
    assert told(spark, store) == kept(store)
    assert len(parts(store) - before) == 1
    assert before < parts(store)


def test_two_at_a_time_do_not_touch_each_other_s(spark: SparkSession, store: Path) -> None:
    with parquet_of(spark, read_store(store)) as first:
        store_history(store, random_history("meanwhile", 60))
        with parquet_of(spark, read_store(store)) as second:
            assert second.folder != first.folder
            assert set(second.entries) == {*first.entries, "meanwhile"}
            assert first.events.count() < second.events.count()
        assert not second.folder.exists()
        assert first.events.count() == sum(map(len, kept(store).values())) - len(load(store / "meanwhile").events)


def test_a_store_that_cannot_be_written_is_read_all_the_same(spark: SparkSession, store: Path) -> None:
    (store / FOLDER).touch()  # no folder can be made here
    assert told(spark, store) == kept(store)
    assert (store / FOLDER).read_bytes() == b""


def test_big_trials_come_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_lab.analysis.arrow_events.BATCH_ROWS", 10)
    events = random_history("big", 1).events
    batches = list(event_batches("big", events))
    assert {batch.num_rows for batch in batches[:-1]} == {10}
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    assert tuple(event for each in tables for event in events_of(each)) == events
    assert len(events) > 10
