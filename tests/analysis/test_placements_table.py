"""Placements, of wild histories and of a simulated cluster in racks, against a short plain-Python version."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual
from stored_trials import store_history, trial

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.parquet import parquet_of
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.placements import PLACEMENTS, placements
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, load, merge
from rebalance_lab.history.intervals import registry_order
from rebalance_lab.trials import api


def oracle(history: History) -> Iterator[tuple[Any, ...]]:
    topics: dict[str, dict[str, list[int]]] = {}
    racks: dict[int, str | None] = {}
    for event in registry_order(history.events):
        match str(event.of("path")).split("/"):
            case ["", "brokers", "topics", topic]:
                topics.pop(topic, None)
                if event.kind is not Kind.DELETED:
                    topics[topic] = msgspec.json.decode(str(event.of("data")))["partitions"]
            case ["", "brokers", "ids", number] if event.of("data"):
                racks[int(number)] = msgspec.json.decode(str(event.of("data"))).get("rack")
    for topic, partitions in topics.items():
        for partition, replicas in partitions.items():
            for position, broker in enumerate(replicas, 1):
                yield topic, int(partition), position, broker, racks.get(broker)


def random_assignments(name: str, seed: int) -> History:
    """Brokers that come and go, and topics that are created, changed and deleted."""
    dice = random.Random(seed)
    events = [Event("runner", 0, 0, Layer.OP, Kind.TRIAL_BEGAN)]
    for n in range(dice.randint(0, 25)):
        kind = dice.choice([Kind.CREATED, Kind.CHANGED, Kind.CHANGED, Kind.DELETED])
        if dice.random() < 0.5:
            path = f"/brokers/ids/{dice.randint(1, 12)}"
            data: object = {"version": 5, **dice.choice([{}, {"rack": "a"}, {"rack": "b"}])}
        else:
            path = dice.choice(["/brokers/topics/t", "/brokers/topics/u", "/brokers/topics/t/partitions"])
            data = {"partitions": {str(each): dice.sample(range(1, 13), 2) for each in range(dice.randint(1, 12))}}
        text = "" if kind is Kind.DELETED else msgspec.json.encode(data).decode()
        detail: dict[str, object] = {"path": path, "data": text}
        at_us, zxid = 1000 * dice.randint(0, 30), dice.randint(1, 9)
        events.append(Event("zookeeper", n, at_us, Layer.REGISTRY, kind, zxid=zxid, detail=detail))
    return History(trial(name, seed=seed, subject="replication"), merge(events))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("placed")
    for seed in range(120):
        store_history(path, random_assignments(f"t{seed:03}", seed))
    settings = {"racks": "2", "topics": "5", "messages": "5"}
    api.run(api.make_plan("placement", world="simulated", settings=settings), path)
    return path


def test_the_table_says_what_its_oracle_says(spark: SparkSession, store: Path) -> None:
    with parquet_of(spark, read_store(store)) as parquet:
        table = placements(parquet.events)
        assertSchemaEqual(table.schema, PLACEMENTS, ignoreNullable=True)
        rows = rows_of(table)
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        place = (row["topic"], row["partition"], row["position"], row["broker"], row["rack"])
        found.setdefault(row["trial"], []).append(place)
    histories = [load(folder) for folder in store.iterdir() if (folder / "trial.json").exists()]
    expected = {history.trial.id: sorted(oracle(history), key=str) for history in histories}
    assert {name: sorted(rows, key=str) for name, rows in found.items()} == {k: v for k, v in expected.items() if v}
    assert {row["rack"] for row in rows} >= {"a", "b", None, "rack-0", "rack-1"}
    assert max(row["partition"] for row in rows) > 9
