"""What a smaller trial must show to replace the larger one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.trials.api import expectation
from rebalance_lab.trials.lab import TrialError


@dataclass(frozen=True, slots=True)
class Target:
    """A finding: the outcome of a check, whether it was a surprise, and the kinds of the events that witness it.
    `unknown`: the checks that were unknown.

    The kinds and the unknown checks keep a search from drifting to another finding: a group without brokers also owns
    nothing, but that differs from a forgotten partition, and a trial that never comes to rest shows less than one
    that does.
    """

    check: str
    outcome: Outcome
    surprise: bool
    witness: tuple[Kind, ...]
    unknown: tuple[str, ...]

    def shown_by(self, history: History, findings: Mapping[str, Finding]) -> bool:
        """Whether a trial shows the same finding, and decides as many other checks."""
        other = _finding(history, findings, self.check)
        return (
            other is not None
            and (other.outcome, other.surprise, other.witness) == (self.outcome, self.surprise, self.witness)
            and all(name in self.unknown for name in other.unknown)
        )


def target_of(history: History, check: str | None) -> Target:
    """The finding to keep: that of `check`, else the first surprise, else the only violation. Raises TrialError: no
    such check, nothing worth keeping, or several violations to choose from."""
    findings = judge(history)
    found = {name: target for name in findings if (target := _finding(history, findings, name)) is not None}
    if check is not None:
        if check not in CHECKS:
            raise TrialError(f"there is no check {check}; there are: {', '.join(CHECKS)}")
        target = found.get(check)
        if target is None or not (target.surprise or target.outcome is Outcome.VIOLATED):
            outcome = "does not apply" if target is None else f"is {target.outcome}, and no surprise"
            raise TrialError(f"{check} {outcome} in {history.trial.id}: there is nothing to keep")
        return target
    surprises = [target for target in found.values() if target.surprise]
    if surprises:
        return surprises[0]
    violated = [target for target in found.values() if target.outcome is Outcome.VIOLATED]
    if len(violated) == 1:
        return violated[0]
    if violated:
        names = ", ".join(target.check for target in violated)
        raise TrialError(f"{history.trial.id} has several violated checks; choose one with --check: {names}")
    raise TrialError(f"{history.trial.id} has no surprise and no violated check: there is nothing to keep")


def _finding(history: History, findings: Mapping[str, Finding], check: str) -> Target | None:
    """The finding of a check in a trial; None if it does not apply."""
    finding = findings.get(check)
    if finding is None:
        return None
    expected = expectation(history.trial)[check]
    surprise = expected is not None and finding.outcome not in {expected, Outcome.UNKNOWN}
    kinds = {event.id: event.kind for event in history.events}
    witness = tuple(kinds[event_id] for event_id in finding.witness)
    unknown = tuple(name for name, each in findings.items() if each.outcome is Outcome.UNKNOWN)
    return Target(check, finding.outcome, surprise, witness, unknown)
