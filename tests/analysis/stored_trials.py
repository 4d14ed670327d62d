"""Stores of trials for tests: random ones for oracles, and told ones for verdicts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_lab.analysis.parquet import Parquet, parquet_of
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.trial_results import judged_trials, trial_results
from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.files import History, Trial, canonical, merge, seal

PARAMETERS: dict[str, int | float | str | bool] = {
    "group": "g",
    "topic": "t",
    "partitions": 2,
    "members": 3,
    "session_timeout_ms": 2000,
    "tick_ms": 500,
    "rebalance_backoff_ms": 500,
    "rebalance_max_retries": 4,
    "pause_ms": 5000,
}

_KINDS = (
    *([Kind.WORKED] * 8),
    *([Kind.OWNED, Kind.DISOWNED] * 3),
    *([Kind.CREATED, Kind.DELETED] * 3),
    *(Kind.CHANGED, Kind.MEMBER_STARTED, Kind.MEMBER_CLOSED, Kind.SESSION_CLOSED, Kind.FAULT_BEGAN, Kind.FAULT_BEGAN),
    *(Kind.FAULT_BIT, Kind.FAULT_ENDED, Kind.REST_REACHED, Kind.REST_REACHED, Kind.REST_MISSED, Kind.CONNECTED),
    *(Kind.PHASE, Kind.PHASE, Kind.REBALANCE_TRIGGERED, Kind.REBALANCE_BEGAN, Kind.REBALANCE_ENDED),
    *(Kind.ATTEMPT_BEGAN, Kind.ATTEMPT_FAILED, Kind.NOTIFICATION_QUEUED, Kind.WATCH_FIRED, Kind.OPERATIONS),
    *([Kind.INVOKED] * 3),
)

#: Of the runner; the rest is of members, or of the server.
_RUNNERS = (Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED, Kind.REST_REACHED, Kind.REST_MISSED, Kind.PHASE)

#: Of sessions: they name neither member nor group.
_SESSIONS = (Kind.WATCH_FIRED, Kind.OPERATIONS, Kind.INVOKED, Kind.CONNECTED)


@dataclass(frozen=True, slots=True)
class RandomTrials:
    """Histories, by trial, and what Spark makes of their store."""

    histories: dict[str, History]
    parquet: Parquet
    results: DataFrame


def trial(name: str, **fields: Any) -> Trial:
    """A trial of scenario `zombie` with the fields given."""
    known = {
        "scenario": "zombie",
        "world": "simulated",
        "subject": "zk",
        "rules": "described",
        "seed": 1,
        "control": False,
        "parameters": PARAMETERS,
    }
    return Trial(id=name, **{**known, **fields})


def random_history(name: str, seed: int) -> History:
    """A history that no protocol would make: few moments, so that many events share one, and
    zxids that do not follow the clock. Everything an interval can begin or end with is in it."""
    dice = random.Random(seed)
    count: dict[str, int] = {}
    events = []
    for _ in range(dice.randint(0, 120)):
        event = _random_event(dice, dice.choice(_KINDS))
        n = count.setdefault(event["actor"], 0)
        count[event["actor"]] += 1
        events.append(Event(n=n, **event))
    parameters = dict(PARAMETERS)
    if dice.random() < 0.5:
        parameters["work_period_ms"] = dice.choice([20, 50, 120])
    return History(trial(name, seed=seed, parameters=parameters), merge(events))


def _random_event(dice: random.Random, kind: Kind) -> dict[str, Any]:
    number = dice.randint(1, 3)
    event: dict[str, Any] = {
        "at_us": dice.randint(0, 40) * 25_000,
        "layer": LAYER_OF[kind],
        "kind": kind,
        "actor": f"m{number}",
        "member": f"g_m{number}-{dice.randint(1, 2)}",
        "session": f"0x{number}",
        "group": dice.choice(["g", "g", "g", "h", None]),
        "detail": None,
    }
    if kind in (Kind.OWNED, Kind.DISOWNED, Kind.WORKED, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        event |= {"topic": "t", "partition": dice.randint(0, 1)}
    if kind in (Kind.CREATED, Kind.CHANGED, Kind.DELETED, Kind.SESSION_CLOSED):
        event |= {"actor": "zookeeper", "zxid": dice.randint(1, 60), "detail": _znode(dice)}
        if dice.random() < 0.1:
            event |= {"member": None}  # an owner znode whose payload tells no member
        elif dice.random() < 0.1:
            event |= {"topic": None, "partition": None}
        elif dice.random() < 0.2:
            event |= {"member": None, "group": None, "topic": dice.choice("tu"), "partition": None}
    elif kind in _RUNNERS:
        event |= {"actor": "runner", "detail": _runners_detail(dice, kind, f"m{number}")}
    elif kind in _SESSIONS:
        event |= {"member": None, "group": None}
    event |= {} if kind not in _DETAILS else {"detail": dice.choice(_DETAILS[kind])}
    if dice.random() < 0.3:
        event |= {"cause": (dice.choice(["m1", "zookeeper"]), dice.randint(0, 9))}
    return event


_DETAILS: dict[Kind, tuple[dict[str, Any], ...]] = {
    Kind.MEMBER_STARTED: ({"streams": {"t": 1}}, {"streams": {"t": 1, "u": 2}}, {"streams": {}}, {}),
    Kind.ATTEMPT_FAILED: ({"reason": "conflict", "why": ""}, {"reason": "error", "why": ""}, {"why": "old"}),
    Kind.INVOKED: (
        *({"op": op, "path": "/p"} for op in ("get", "children", "exists", "create", "set", "delete", "close")),
        {"op": "multi", "path": "", "parts": [["create", "/a"], ["delete", "/b"]]},
        {"op": "multi_read", "path": "", "parts": [["get", "/a"], ["get", "/b"], ["children", "/c"]]},
    ),
    Kind.OPERATIONS: ({"since_us": 0, "counts": {"get": 3, "multi_read": 2, "reads": 7, "set": 1}}, {"counts": {}}),
}


def _znode(dice: random.Random) -> dict[str, Any]:
    path = dice.choice(["/brokers/topics/t", "/brokers/topics/u", "/brokers/ids/1"])
    data = dice.choice(['{"version":1,"partitions":{"0":[1],"2":[1]}}', '{"partitions":{"1":[]}}', "4711", ""])
    return {"path": path, "data": data, "ephemeral": True}


def _runners_detail(dice: random.Random, kind: Kind, target: str) -> dict[str, Any]:
    if kind is Kind.PHASE:
        change = {"change": dice.choice(["join", "leave", "broker"]), "members": dice.randint(1, 4)}
        name = dice.choice(["joining", "changing", "changing", "changing", "closing"])
        return {"name": name} | (change if dice.random() < 0.6 else {})
    if kind in (Kind.REST_REACHED, Kind.REST_MISSED):
        return {"phase": "p"}
    return {"fault": dice.choice(["kill", "pause", "pause", "leave"]), "target": target, "of": 0}


@contextmanager
def results_of(spark: SparkSession, store: Path) -> Iterator[DataFrame]:
    """RESULTS of a store's trials, for as long as its Parquet is open."""
    with judged_of(spark, store) as judged:
        yield trial_results(judged)


@contextmanager
def judged_of(spark: SparkSession, store: Path) -> Iterator[DataFrame]:
    """JUDGED of a store's trials, for as long as its Parquet is open."""
    with parquet_of(spark, read_store(store)) as parquet:
        judged = judged_trials(parquet.histories).persist()
        try:
            yield judged
        finally:
            judged.unpersist()


def store_history(store: Path, history: History) -> Path:
    """Write a trial to a store, each actor in a file of its own; its folder."""
    folder = store / history.trial.id
    folder.mkdir(parents=True)
    for actor in sorted({event.actor for event in history.events}):
        lines = canonical(event for event in history.events if event.actor == actor)
        (folder / f"{actor}.jsonl").write_bytes(lines)
    seal(folder, history.trial)
    return folder
