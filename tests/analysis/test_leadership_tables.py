"""Leaders and replicas in sync, of wild histories and of a simulated cluster, against a short plain-Python version."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertSchemaEqual
from stored_trials import store_history, trial

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.parquet import parquet_of
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.intervals import IN_SYNC, LEADERSHIPS, in_sync, leaderships, trial_ends
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, load, merge
from rebalance_lab.history.intervals import registry_order
from rebalance_lab.trials import api

#: What is held: (topic, partition), then what a leadership or a replica in sync is told apart by.
Key = tuple[Any, ...]


def keys_led(place: Key, state: dict[str, Any]) -> set[Key]:
    return {(*place, state["leader"], state["leader_epoch"])} if state["leader"] >= 0 else set()


def keys_in_sync(place: Key, state: dict[str, Any]) -> set[Key]:
    return {(*place, replica) for replica in state["isr"]}


def oracle(history: History, keys: Callable[[Key, dict[str, Any]], set[Key]]) -> Iterator[tuple[Any, ...]]:
    held: dict[Key, Event] = {}
    for event in registry_order(history.events):
        parts = str(event.of("path")).split("/")
        if parts[-1] != "state" or event.kind not in {Kind.CREATED, Kind.CHANGED, Kind.DELETED}:
            continue
        place = (parts[3], int(parts[5]))
        now = set() if event.kind is Kind.DELETED else keys(place, msgspec.json.decode(str(event.of("data"))))
        for key in [key for key in held if key[:2] == place and key not in now]:
            begin = held.pop(key)
            yield (*key, begin.at_us, max(begin.at_us, event.at_us), begin.id, event.id)
        held |= {key: event for key in now if key not in held}
    for key, begin in held.items():
        yield (*key, begin.at_us, max(begin.at_us, history.events[-1].at_us), begin.id, None)


def random_states(name: str, seed: int) -> History:
    """States of two partitions, with zxids that do not follow the clock."""
    dice = random.Random(seed)
    events = [Event("runner", 0, 0, Layer.OP, Kind.TRIAL_BEGAN)]
    for n in range(dice.randint(0, 25)):
        kind = dice.choice([Kind.CREATED, Kind.CHANGED, Kind.CHANGED, Kind.CHANGED, Kind.DELETED])
        state = {
            "leader": dice.choice([-1, 1, 2]),
            "leader_epoch": dice.randint(0, 2),
            "isr": dice.sample([1, 2, 3], 2),
        }
        path = dice.choice([f"/brokers/topics/t/partitions/{dice.randint(0, 1)}/state", "/brokers/topics/t"])
        detail: dict[str, object] = {
            "path": path,
            "data": "" if kind is Kind.DELETED else msgspec.json.encode(state).decode(),
        }
        at_us, zxid = 1000 * dice.randint(0, 30), dice.randint(1, 9)
        events.append(Event("zookeeper", n, at_us, Layer.REGISTRY, kind, zxid=zxid, detail=detail))
    return History(trial(name, seed=seed, subject="replication"), merge(events))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wild histories, and a cluster whose leader goes."""
    path = tmp_path_factory.mktemp("states")
    for seed in range(120):
        store_history(path, random_states(f"t{seed:02}", seed))
    api.run(api.make_plan("isr-election", world="simulated"), path)
    return path


@pytest.mark.parametrize(
    ("table", "schema", "keys"),
    [(leaderships, LEADERSHIPS, keys_led), (in_sync, IN_SYNC, keys_in_sync)],
)
def test_the_table_says_what_its_oracle_says(
    spark: SparkSession,
    store: Path,
    table: Callable[[DataFrame, DataFrame], DataFrame],
    schema: Any,
    keys: Callable[[Key, dict[str, Any]], set[Key]],
) -> None:
    with parquet_of(spark, read_store(store)) as parquet:
        found = table(parquet.events, trial_ends(parquet.events))
        assertSchemaEqual(found.schema, schema, ignoreNullable=True)
        rows = [tuple(id_or(value) for value in row.values()) for row in rows_of(found)]
    folders = read_store(store).folders
    expected = [(name, *each) for name, folder in folders.items() for each in oracle(load(folder), keys)]
    assert Counter(rows) == Counter(expected)
    of_cluster = [row for row in rows if row[0].startswith("isr-election")]
    assert len({row[3] for row in of_cluster}) > 1, "several brokers led, or were in sync"
    assert len(rows) > 300 if keys is keys_in_sync else len(rows) > 200


def id_or(value: Any) -> Any:
    return tuple(value.values()) if isinstance(value, dict) else value
