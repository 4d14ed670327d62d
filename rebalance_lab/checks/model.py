"""What a check is. Checks are pure functions of a history.

An outcome is *violated* with the smallest witness, *clean*, or *unknown*: a history whose
faults cannot be shown to have bitten, or that never came to rest, proves no absence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.files import History

#: The subject of the ZooKeeper-era consumer groups, as stored trials name it (`Trial.generation`).
ZK = "zk"


class Outcome(StrEnum):
    CLEAN = "clean"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check says of one history.

    `witness`: ids of the fewest events that prove a violation. `measures`: numbers with their
    unit in the name (`longest_us`, `count`), given whatever the outcome.
    """

    outcome: Outcome
    why: str
    witness: tuple[EventId, ...] = ()
    measures: dict[str, int] = field(default_factory=dict)


def _always(_history: History) -> bool:
    return True


class About(StrEnum):
    """What a check looks for: an anomaly, which a control must not show, or whether a statement
    holds, which a control may refute as well as any other trial."""

    ANOMALY = "anomaly"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. It gives a finding only for trials of the subjects in `applies_to`, and only if a history has what it
    looks at (`applies`); otherwise none at all, never a clean one.

    `compares`: the layers it looks at. `meaning`: one sentence for people. `plants`: the planted bugs that must make it
    say violated.
    """

    name: str
    compares: tuple[Layer, ...]
    meaning: str
    plants: tuple[str, ...]
    judge: Callable[[History], Finding]
    applies_to: tuple[str, ...]
    about: About = About.ANOMALY
    applies: Callable[[History], bool] = _always
