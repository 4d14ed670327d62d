from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from stored_trials import random_history, store_history, trial

from rebalance_lab.analysis.datasource import FORMAT, HistoryReader, HistorySource, read_events, register_histories
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.session import cores_of
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.summarised import places_of
from rebalance_lab.analysis.sweeps import TASKS_PER_CORE
from rebalance_lab.analysis.tables.schemas import EVENTS
from rebalance_lab.analysis.tables.trial_results import judged_place
from rebalance_lab.analysis.workers import ROWS_AT_ONCE, Row, mapped
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import TRIAL_FILE, History, HistoryError, load
from rebalance_lab.history.scratch import Scratch


def test_every_event_of_every_trial_is_a_row(spark: SparkSession, tmp_path: Path) -> None:
    histories = [random_history(f"t{seed}", seed) for seed in range(12)]
    for history in histories:
        store_history(tmp_path, history)

    frame = read_events(spark, tmp_path)
    assert frame.schema == EVENTS
    assert frame.rdd.getNumPartitions() == len(histories)
    rows = rows_of(frame)

    told = {history.trial.id: list(history.events) for history in histories if history.events}
    found: dict[str, list[Event]] = {}
    for row in rows:  # within a trial in the history's order
        found.setdefault(row["trial"], []).append(_event(row))
    assert found == told
    assert any(event.cause for events in told.values() for event in events)


def _event(row: dict[str, Any]) -> Event:
    fields = {name: row[name] for name in Event.__struct_fields__}
    if row["cause"] is not None:
        fields["cause"] = (row["cause"]["actor"], row["cause"]["n"])
    if row["detail"] is not None:
        fields["detail"] = msgspec.json.decode(row["detail"])
    return msgspec.convert(fields, Event)


def test_only_the_trials_that_are_named_are_read(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(4):
        store_history(tmp_path, random_history(f"t{seed}", seed + 20))
    rows = rows_of(read_events(spark, tmp_path, ["t1", "t3"]).select("trial").distinct())
    assert {row["trial"] for row in rows} == {"t1", "t3"}


def test_a_filter_is_forgotten_by_the_next_query(spark: SparkSession, tmp_path: Path) -> None:
    """With filters pushed down to a source in Python, Spark 4.3.0 gives the second query the rows of the first."""
    for seed in range(3):
        store_history(tmp_path, random_history(f"t{seed}", seed + 20))
    register_histories(spark)
    events = spark.read.format(FORMAT).load(str(tmp_path))
    known = {f"t{seed}": len(load(tmp_path / f"t{seed}").events) for seed in range(3)}
    assert events.where("trial = 't1'").count() == known["t1"]
    assert events.count() == sum(known.values()) > known["t1"]


def test_the_option_names_what_is_opened(spark: SparkSession, tmp_path: Path) -> None:
    for seed in range(3):
        store_history(tmp_path, random_history(f"t{seed}", seed + 20))
    next((tmp_path / "t0").glob("*.jsonl")).write_bytes(b"{}\n")
    register_histories(spark)
    events = spark.read.format(FORMAT).option("trials", '["t1", "t2"]').load(str(tmp_path))
    assert {row["trial"] for row in rows_of(events.select("trial").distinct())} == {"t1", "t2"}


def test_a_store_without_trials_has_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    assert rows_of(read_events(spark, tmp_path)) == []


def test_a_single_trial_is_a_store(spark: SparkSession, tmp_path: Path) -> None:
    folder = store_history(tmp_path, random_history("alone", 3))
    assert {row["trial"] for row in rows_of(read_events(spark, folder))} == {"alone"}
    assert read_store(folder).folders == {"alone": folder}


def test_a_trial_has_the_name_of_its_folder(tmp_path: Path) -> None:
    store_history(tmp_path, random_history("first-name", 3)).rename(tmp_path / "second-name")
    (found,) = read_store(tmp_path).trials
    assert found.id == "second-name"


def test_trials_that_were_cut_off_are_left_out_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    store_history(tmp_path, random_history("sealed", 3))
    (store_history(tmp_path, random_history("cut", 4)) / TRIAL_FILE).unlink()
    (tmp_path / "logs").mkdir()  # no trial at all
    store = read_store(tmp_path)
    assert (list(store.folders), store.cut_off) == (["sealed"], ("cut",))
    assert {row["trial"] for row in rows_of(read_events(spark, tmp_path))} == {"sealed"}


def test_a_broken_line_names_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    folder = store_history(tmp_path, random_history("t", 5))
    (folder / "m1.jsonl").write_bytes(b"{}\n")
    with pytest.raises(PySparkException, match=r"t/m1\.jsonl:1 is not an event"):
        rows_of(read_events(spark, tmp_path))


def test_a_broken_trial_is_left_out_and_names_its_file(tmp_path: Path) -> None:
    (store_history(tmp_path, random_history("broken", 5)) / TRIAL_FILE).write_bytes(b"{")
    store_history(tmp_path, random_history("sound", 6))
    store = read_store(tmp_path)
    assert list(store.folders) == list(store.seen) == [trial.id for trial in store.trials] == ["sound"]
    (out,) = store.left_out
    assert (out.trial, "broken/trial.json cannot be read" in out.why) == ("broken", True)


def test_a_trial_that_a_process_records_is_not_cut_off(tmp_path: Path) -> None:
    store_history(tmp_path, random_history("sealed", 3))
    (store_history(tmp_path, random_history("dead", 4)) / TRIAL_FILE).unlink()
    scratch = Scratch.make(tmp_path / "recorded")
    (scratch.folder / "m1.jsonl").write_bytes(b"")
    assert read_store(tmp_path).cut_off == ("dead",)
    scratch.keep()
    assert read_store(tmp_path).cut_off == ("dead", "recorded")


def test_a_store_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="is not a folder"):
        read_store(tmp_path / "nowhere")


def test_a_trial_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="holds no trial 'x'"):
        HistoryReader(tmp_path, ("x",)).partitions()


def test_a_source_without_a_path_is_an_error() -> None:
    assert HistorySource.name() == FORMAT
    with pytest.raises(HistoryError, match="needs the option `path`"):
        HistorySource({}).reader(EVENTS)


def test_big_trials_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_lab.analysis.arrow_events.BATCH_ROWS", 10)
    history = History(trial("big"), random_history("big", 1).events)
    reader = HistoryReader(store_history(tmp_path, history), None)
    (partition,) = reader.partitions()
    sizes = [batch.num_rows for batch in reader.read(partition)]
    assert sum(sizes) == len(load(tmp_path / "big").events) > 10
    assert set(sizes[:-1]) == {10}


def test_a_trial_is_judged_where_its_folder_is(spark: SparkSession, tmp_path: Path) -> None:
    """Also if the store has a link to it, or is the trial."""
    target = store_history(tmp_path / "elsewhere", random_history("linked", 3))
    store = tmp_path / "store"
    store.mkdir()
    (store / "alias").symlink_to(target)
    for path, folder in ((store, store / "alias"), (target, target)):
        (row,) = rows_of(places_of(spark, read_store(path), ["linked"]))
        assert (row["trial"], row["folder"]) == ("linked", str(folder))
        assert judged_place(row)["why_left_out"] is None


def test_many_trials_are_judged_in_tasks_of_about_equal_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """By name, the trials of a costly scenario would all be in one task."""
    for number in range(20):
        store_history(tmp_path, History(trial(f"t{number:02}"), ()))
    store = read_store(tmp_path)
    tasks = TASKS_PER_CORE * cores_of(spark)
    places = places_of(spark, store, list(store.folders))
    sizes = [row["count"] for row in rows_of(places.groupBy(F.spark_partition_id()).count())]
    assert len(sizes) == tasks < 20 == sum(sizes)
    assert max(sizes) - min(sizes) <= 1
    few = places_of(spark, store, list(store.folders)[:tasks])
    assert "Exchange" not in few._jdf.queryExecution().executedPlan().toString()


def test_few_rows_are_in_python_at_once() -> None:
    """Also in a session whose batches are large: a row may be a whole trial."""
    seen = []

    def twice(row: Row) -> list[Row]:
        seen.append(row["number"])
        return [row, row]

    batch = pa.RecordBatch.from_pydict({"number": list(range(2 * ROWS_AT_ONCE + 1))})
    found = mapped([batch], batch.schema, twice)
    assert next(found).num_rows == 2 * ROWS_AT_ONCE
    assert len(seen) == ROWS_AT_ONCE
    assert [each.num_rows for each in found] == [2 * ROWS_AT_ONCE, 2]
    assert seen == list(range(2 * ROWS_AT_ONCE + 1))
