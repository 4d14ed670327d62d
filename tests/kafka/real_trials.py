"""Trials with real members or brokers, and what tests ask of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from decided import undisturbed

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, load
from rebalance_lab.trials import api

#: What must hold whoever the members are: everything owned once at each rest, ids and owners that go with
#: their sessions, nobody who does not react or come to an end.
SOUND = (
    "omission",
    "registry_overlap",
    "registration",
    "orphan_owner",
    "missed_watch",
    "non_convergence",
    "unowned_window",
)


def trial(
    name: str, members: str, store: Path, /, *, seed: int = 1, **settings: str
) -> tuple[History, api.TrialResult]:
    """Run one, again while a busy host disturbs it, and read it back. Sessions are Kafka's default."""
    settings = {"session_timeout_ms": "6000", **settings}
    plan = api.make_plan(name, world="processes", implementation=members, seed=seed, settings=settings)
    (result,) = undisturbed([plan], store, 1).values()
    return load(result.folder), result


def outcomes(result: api.TrialResult) -> Mapping[str, str]:
    """Check -> its outcome, and why where it is not clean."""
    return {
        name: "clean" if finding.outcome == "clean" else f"{finding.outcome}: {finding.why}"
        for name, finding in result.findings.items()
    }


def unsound(result: api.TrialResult) -> Mapping[str, str]:
    """Those of SOUND that are not clean."""
    found = outcomes(result)
    return {name: found.get(name, "did not apply") for name in SOUND if found.get(name) != "clean"}


def of_kind(history: History, kind: Kind) -> list[Event]:
    return [event for event in history.events if event.kind is kind]


def rules_of(history: History) -> Mapping[str, str]:
    """Actor -> its rules, from what members told when they started."""
    return {event.actor: str(event.of("rules")) for event in of_kind(history, Kind.MEMBER_STARTED)}


def verdicts(store: Path) -> Mapping[str, Any]:
    """What the command `claims` says of every claim from the trials of a store."""
    # Its exit code tells of all other claims, too, which nobody has tried there.
    said = subprocess.run(
        [sys.executable, "-m", "rebalance_lab", "claims", "--store", str(store), "--json"],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert said.stdout.startswith("{"), said.stderr
    found: Mapping[str, Any] = json.loads(said.stdout)
    return found


def ledger(store: Path, claim: str) -> Mapping[str, Any]:
    """What it says of a claim by real members."""
    found: Mapping[str, Any] = verdicts(store)[claim]["readings"]["real 0.8.2.2"]
    return found
