"""Assignors by name. A new rule is one function and one line here."""

from __future__ import annotations

from rebalance_lab.assignors.model import Assignor, UnknownAssignor
from rebalance_lab.assignors.round_robin import round_robin
from rebalance_lab.assignors.slices import ceil, range_08

ASSIGNORS: dict[str, Assignor] = {"ceil": ceil, "range": range_08, "roundrobin": round_robin}

#: Those that members in other processes have, too.
BUILT_IN = tuple(ASSIGNORS)


def register(name: str, assignor: Assignor) -> None:
    """Give an assignor of your own a name, for this process. Raises ValueError when another one has it."""
    if ASSIGNORS.setdefault(name, assignor) is not assignor:
        raise ValueError(f"another assignor is named {name!r}; choose another name")


def by_name(name: str) -> Assignor:
    """The assignor of that name. Raises UnknownAssignor."""
    if name not in ASSIGNORS:
        raise UnknownAssignor(f"no assignor is named {name!r}; known are {', '.join(sorted(ASSIGNORS))}")
    return ASSIGNORS[name]
