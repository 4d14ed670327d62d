"""Rebalance Lab runs Kafka's ways of sharing partitions, breaks them, and judges what happens.

Programs use the names in this package, such as `rebalance_lab.run("zombie", seed=7)` (docs/python.md).
"""

# ruff: noqa: F405 - the type checker takes the names from `api.__all__`
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_lab.api import *  # noqa: F403

__all__ = [
    "Analysis",
    "EmbeddedServerError",
    "FailedTrial",
    "Finding",
    "History",
    "HistoryError",
    "MissingLibrary",
    "Outcome",
    "PlanError",
    "Result",
    "Results",
    "SparkStartError",
    "TablesError",
    "Trial",
    "TrialError",
    "UnknownTable",
    "ZooKeeperEnsemble",
    "ZooKeeperFaults",
    "claims",
    "create_topic",
    "judge",
    "load",
    "load_store",
    "read_table",
    "register_histories",
    "run",
    "scenario_names",
    "spark",
    "sweep",
    "write_tables",
    "zookeeper",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the processes of members, and every pytest that has the plugin,
    import this package too and should not load all of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("rebalance_lab.api"), name)
