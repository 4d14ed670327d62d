"""What the commands that run trials share."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.cli.failures import Failure, must_be_writable
from rebalance_lab.cli.options import Brokers, Members
from rebalance_lab.trials.api import remove_unfinished
from rebalance_lab.trials.plan import OURS
from rebalance_lab.trials.scenario import scenario


def implementation_of(name: str, members: Members, brokers: Brokers) -> str:
    """Whose nodes take part in a scenario. Raises Failure for the option of other scenarios, PlanError for one that
    does not exist."""
    real = scenario(name).subject.real
    given = {"members": members.value, "brokers": brokers.value}
    for option, value in given.items():
        if value != OURS and (real is None or option != real.name):
            instead = "leave it out" if real is None else f"use --{real.name}"
            raise Failure(f"--{option} {value}: scenario {name} has no real {option}; {instead}")
    return OURS if real is None else given[real.name]


def writable_store(store: Path) -> Path:
    """The store, created if it does not exist, without the trials of processes that were killed. Raises Failure if it
    cannot be written to."""
    must_be_writable(store, f"to the store {store}", "another with --store")
    remove_unfinished(store)
    return store
