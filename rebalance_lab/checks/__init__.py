"""Checks: pure functions of a history, found by registration.

A check is one module of this package that holds a `CHECK`. To add one, add its file and a
tiny history in `tests/checks/` that it calls violated; nothing else needs to know.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from rebalance_lab.checks.disturbances import doubted
from rebalance_lab.checks.model import Check, Finding, Outcome
from rebalance_lab.history.files import History

__all__ = ["CHECKS", "Check", "Finding", "Outcome", "discover", "judge"]


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


#: Every check by name, in alphabetical order.
CHECKS: dict[str, Check] = discover(__name__, __path__)


def judge(history: History) -> dict[str, Finding]:
    """The finding of every check that applies, in the order of CHECKS; unknown where something else
    disturbed the trial (`disturbances`). Raises HistoryError for events that no recorder of this
    lab writes."""
    found = {name: check.judge(history) for name, check in CHECKS.items() if check.applies(history)}
    return doubted(history, found)
