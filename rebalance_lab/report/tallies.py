"""How all trials came out, counted: for each kind of trial, a line for each check."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rebalance_lab.analysis.results import Analysis, TrialOutcome
from rebalance_lab.history.checks.model import Outcome


@dataclass(frozen=True, slots=True)
class Tally:
    """One check over the trials of a kind: how many came out how, and the range of the longest (µs)."""

    check: str
    violated: int
    clean: int
    unknown: int
    shortest_us: int
    longest_us: int


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials alike. `role`: with its fault | control | planted bug …"""

    scenario: str
    world: str
    rules: str
    role: str
    trials: int
    tallies: tuple[Tally, ...]


def tally(analysis: Analysis) -> tuple[Kind, ...]:
    """Every scenario, world, rule set and role among the outcomes, with its checks by name."""
    kinds: dict[tuple[str, str, str, str], list[TrialOutcome]] = {}
    for outcome in analysis.outcomes:
        kinds.setdefault((outcome.scenario, outcome.world, outcome.rules, _role(outcome)), []).append(outcome)
    return tuple(
        Kind(*kind, len({outcome.trial for outcome in outcomes}), _by_check(outcomes))
        for kind, outcomes in sorted(kinds.items())
    )


def _role(outcome: TrialOutcome) -> str:
    control = "control" if outcome.control else "with its fault"
    return control if outcome.plant is None else f"{control}, planted bug {outcome.plant}"


def _by_check(outcomes: list[TrialOutcome]) -> tuple[Tally, ...]:
    checks: dict[str, list[TrialOutcome]] = {}
    for outcome in outcomes:
        checks.setdefault(outcome.check, []).append(outcome)
    tallies = []
    for check, alike in sorted(checks.items()):
        counted = Counter(outcome.outcome for outcome in alike)
        lengths = [outcome.longest_us for outcome in alike]
        tallies.append(
            Tally(
                check=check,
                violated=counted[Outcome.VIOLATED],
                clean=counted[Outcome.CLEAN],
                unknown=counted[Outcome.UNKNOWN],
                shortest_us=min(lengths),
                longest_us=max(lengths),
            )
        )
    return tuple(tallies)
