"""What a check is. Checks are pure functions of a history.

An outcome is *violated* with the smallest witness, *clean*, or *unknown*: a history whose
faults cannot be shown to have bitten, or that never came to rest, proves no absence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_lab.checks.completeness import unknown_causes
from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.files import History

#: The subject of the ZooKeeper-era consumer groups, as stored trials name it (`Trial.subject`).
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


#: Why events are wrong together, if a check does not say it better.
TOGETHER = "Each event is allowed by itself; together they break the rule above."


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted bug that a check must report, and a simulated trial in which it shows: the scenario and its settings.
    Without the bug the same trial is clean in that check. The default: fetchers that take as long to stop as those of
    0.8, so joins meet owners that have not let go."""

    bug: str
    scenario: str
    control: bool = False
    settings: Mapping[str, str] = field(default_factory=lambda: {"fetcher_stop_ms": "100"})


@dataclass(frozen=True, slots=True)
class Check:
    """One check. It gives a finding only for trials of the subjects in `applies_to`, and only if a history has what it
    looks at (`looks_at`: all that it finds there, or whether there is something); otherwise none at all, never a clean
    one.

    `compares`: the layers it looks at. `meaning`: one sentence for people. `together`: why the events of its witness
    are wrong together. `statement`: the statement that it tests, in words that can hold or fail, and which a control
    may refute as well as any other trial; None if it looks for an anomaly, which a control must not show. `title`: its
    name for people, if that is not simply the words of `name`.
    """

    name: str
    compares: tuple[Layer, ...]
    meaning: str
    plants: tuple[Planted, ...]
    judge: Callable[[History], Finding]
    applies_to: tuple[str, ...]
    together: str = TOGETHER
    statement: str | None = None
    title: str | None = None
    looks_at: Callable[[History], object] = lambda _history: True

    def applies(self, history: History) -> bool:
        """Whether the history has what the check looks at."""
        return bool(self.looks_at(history))


def violated(why: str, witness: tuple[EventId | None, ...], measures: dict[str, int]) -> Finding:
    """A violation. The witness keeps its order, with each id once and without None (the history's end)."""
    ids = tuple(dict.fromkeys(event for event in witness if event is not None))
    return Finding(Outcome.VIOLATED, why, ids, measures)


def not_violated(
    history: History,
    why: str,
    measures: dict[str, int],
    *,
    vacuous: str | None = None,
    across_layers: bool = False,
) -> Finding:
    """Clean, or unknown with every cause. `vacuous`: why the check had nothing to look at;
    `across_layers`: see `unknown_causes`."""
    causes = unknown_causes(history, across_layers=across_layers)
    if vacuous is not None:
        causes.append(vacuous)
    if causes:
        return Finding(Outcome.UNKNOWN, "; ".join(causes), (), measures)
    return Finding(Outcome.CLEAN, why, (), measures)


def unknown(history: History, cause: str) -> Finding:
    """Unknown for this cause and all others, for checks that can measure nothing."""
    return Finding(Outcome.UNKNOWN, "; ".join([*unknown_causes(history), cause]))
