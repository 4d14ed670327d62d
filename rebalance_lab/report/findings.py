"""The checks of one trial: anomalies and statements apart, each with the expectation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.analysis.ledger import constructed
from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import About, Outcome
from rebalance_lab.history.files import Trial
from rebalance_lab.trials.api import expectation
from rebalance_lab.trials.plan import PlanError

#: What the outcome of a check says about a statement.
SAID = {Outcome.CLEAN: "holds", Outcome.VIOLATED: "fails", Outcome.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one trial. `said`: its outcome in words. `expected`: the expected outcome in the same words; None
    if both are allowed or the expectation is not known. `by_construction`: a statement that holds because these
    members were built from it, which is no evidence."""

    outcome: TrialOutcome
    statement: bool
    said: str
    expected: str | None
    by_construction: bool

    @property
    def surprising(self) -> bool:
        return self.expected is not None and self.said not in {self.expected, "unknown"}


def is_statement(check: str) -> bool:
    """Whether a check tests a statement. A check that this lab does not know does not."""
    return check in CHECKS and CHECKS[check].about is About.STATEMENT


def findings_of(trial: Trial, outcomes: Sequence[TrialOutcome]) -> tuple[Finding, ...]:
    """The findings on a trial, in the order of its outcomes."""
    expected = _expected(trial)
    return tuple(_finding(outcome, expected.get(outcome.check)) for outcome in outcomes)


def carded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that get a card: anomalies, and statements that failed unexpectedly."""
    return [
        each
        for each in findings
        if each.outcome.outcome == Outcome.VIOLATED and (not each.statement or each.surprising)
    ]


def status_of(findings: Sequence[Finding]) -> str:
    """as expected | surprise | unknown, of the whole trial."""
    if any(finding.surprising for finding in findings):
        return "surprise"
    return "unknown" if any(finding.said == "unknown" for finding in findings) else "as expected"


def _finding(outcome: TrialOutcome, expected: Outcome | None) -> Finding:
    statement = is_statement(outcome.check)

    def said(what: str) -> str:
        return SAID[Outcome(what)] if statement else what

    built = outcome.outcome == Outcome.CLEAN and (outcome.scenario, outcome.rules, outcome.check) in constructed()
    return Finding(outcome, statement, said(outcome.outcome), None if expected is None else said(expected), built)


def _expected(trial: Trial) -> Mapping[str, Outcome | None]:
    """What the scenario expects; empty if this lab no longer has it."""
    try:
        return expectation(trial)
    except PlanError:
        return {}
