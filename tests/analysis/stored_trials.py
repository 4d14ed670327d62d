"""Stores of trials for tests: random ones for oracles, and told ones for verdicts."""

from __future__ import annotations

import random
from pathlib import Path

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
    *(Kind.FAULT_BIT, Kind.FAULT_ENDED, Kind.REST_REACHED, Kind.CONNECTED),
)


def trial(name: str, **fields: object) -> Trial:
    """A trial of scenario `zombie` with the fields given."""
    known = {
        "scenario": "zombie",
        "world": "simulated",
        "generation": "zk",
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


def _random_event(dice: random.Random, kind: Kind) -> dict[str, object]:
    number = dice.randint(1, 3)
    event: dict[str, object] = {
        "at_us": dice.randint(0, 40) * 25_000,
        "layer": LAYER_OF[kind],
        "kind": kind,
        "actor": f"m{number}",
        "member": f"g_m{number}-{dice.randint(1, 2)}",
        "session": f"0x{number}",
        "group": dice.choice(["g", "g", "g", None]),
        "detail": None,
    }
    if kind in (Kind.OWNED, Kind.DISOWNED, Kind.WORKED, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        event |= {"topic": "t", "partition": dice.randint(0, 1)}
    if kind in (Kind.CREATED, Kind.CHANGED, Kind.DELETED, Kind.SESSION_CLOSED):
        event |= {"actor": "zookeeper", "zxid": dice.randint(1, 60), "detail": {"path": "/p", "ephemeral": True}}
        if dice.random() < 0.1:
            event |= {"member": None}  # an owner znode whose payload tells no member
        elif dice.random() < 0.1:
            event |= {"topic": None, "partition": None}
    elif kind in (Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED):
        fault = dice.choice(["kill", "pause", "pause", "leave"])
        event |= {"actor": "runner", "detail": {"fault": fault, "target": f"m{number}", "of": 0}}
    elif kind is Kind.REST_REACHED:
        event |= {"actor": "runner", "member": None, "session": None, "detail": {"phase": "p"}}
    if dice.random() < 0.3:
        event |= {"cause": (dice.choice(["m1", "zookeeper"]), dice.randint(0, 9))}
    return event


def store_history(store: Path, history: History) -> Path:
    """Write a trial to a store, each actor in a file of its own; its folder."""
    folder = store / history.trial.id
    folder.mkdir(parents=True)
    for actor in sorted({event.actor for event in history.events}):
        lines = canonical(event for event in history.events if event.actor == actor)
        (folder / f"{actor}.jsonl").write_bytes(lines)
    seal(folder, history.trial)
    return folder
