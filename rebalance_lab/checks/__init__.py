"""Checks: pure functions of a history.

A check is a module of this package that holds a `CHECK`, or a `Check` that another module registers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from rebalance_lab.checks.disturbances import doubted
from rebalance_lab.checks.model import Check, Finding, Outcome
from rebalance_lab.history.files import History
from rebalance_lab.kernel.garbage import without_collector

__all__ = ["CHECKS", "Check", "Finding", "Outcome", "checks_of", "discover", "judge", "register"]


def discover(package: str, path: Iterable[str]) -> dict[str, Check]:
    """The checks of a package, in alphabetical order. Raises TypeError for a `CHECK` that is
    none, or that does not bear its file's name."""
    found: dict[str, Check] = {}
    for name in sorted(info.name for info in pkgutil.iter_modules(path)):
        module = importlib.import_module(f"{package}.{name}")
        if not hasattr(module, "CHECK"):
            continue  # a helper
        if not isinstance(module.CHECK, Check) or module.CHECK.name != name:
            raise TypeError(
                f"{package}.{name}.CHECK must be a Check named {name!r}, as its file; it is {module.CHECK!r}"
            )
        found[name] = module.CHECK
    return found


#: Every check by name: those of this package in alphabetical order, then those that others registered.
CHECKS: dict[str, Check] = discover(__name__, __path__)


def register(check: Check) -> Check:
    """Add a check from outside this package. Raises ValueError if its name is taken."""
    if check.name in CHECKS:
        raise ValueError(f"two checks are named {check.name}; rename one of them")
    CHECKS[check.name] = check
    return check


def checks_of(subject: str) -> dict[str, Check]:
    """The checks for trials of a subject, by name, in the order of CHECKS."""
    return {name: check for name, check in CHECKS.items() if subject in check.applies_to}


def judge(history: History) -> dict[str, Finding]:
    """The finding of every check that applies, in the order of CHECKS; unknown where something else
    disturbed the trial (`disturbances`). Raises HistoryError for events that no recorder of this
    lab writes."""
    checks = checks_of(history.trial.subject)
    with without_collector():
        found = {name: check.judge(history) for name, check in checks.items() if check.applies(history)}
        return doubted(history, found)
