"""The outcomes of all trials, counted: for each kind of trial, a line for each check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.analysis.ledger import constructed
from rebalance_lab.analysis.results import Analysis, TrialOutcome
from rebalance_lab.checks.model import Outcome
from rebalance_lab.report.findings import is_statement


@dataclass(frozen=True, slots=True)
class Tally:
    """One check over the trials of a kind: the number of each outcome, and the range of the longest (µs).
    `by_construction`: these members were built from what it tests, so clean is no evidence."""

    check: str
    violated: int
    clean: int
    unknown: int
    shortest_us: int
    longest_us: int
    by_construction: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials of one kind. `role`: with its fault | control | planted bug …"""

    scenario: str
    world: str
    rules: str
    role: str
    trials: int
    tallies: tuple[Tally, ...]

    @property
    def by_check(self) -> Mapping[str, Tally]:
        return {tally.check: tally for tally in self.tallies}


@dataclass(frozen=True, slots=True)
class Counted:
    """`heads`: (title, checks) of the columns: anomalies, then statements."""

    kinds: tuple[Kind, ...]
    heads: tuple[tuple[str, tuple[str, ...]], ...]


def tally(analysis: Analysis) -> Counted:
    """All trials by kind, and the checks that applied to any of them."""
    kinds = _kinds(analysis)
    checks = sorted({tally.check for kind in kinds for tally in kind.tallies})
    heads = (
        ("Anomalies", tuple(check for check in checks if not is_statement(check))),
        ("Statements", tuple(check for check in checks if is_statement(check))),
    )
    return Counted(kinds, tuple(head for head in heads if head[1]))


def _kinds(analysis: Analysis) -> tuple[Kind, ...]:
    """Every combination of scenario, world, rule set and role among the outcomes, with its checks by name."""
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
                by_construction=(alike[0].scenario, alike[0].rules, check) in constructed(),
            )
        )
    return tuple(tallies)
