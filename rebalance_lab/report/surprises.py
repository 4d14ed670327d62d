"""Trials whose outcome their scenario does not expect, one line for each kind. People look at these
first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lab.analysis.results import Analysis, TrialOutcome
from rebalance_lab.history.files import Trial
from rebalance_lab.report.findings import Finding, findings_of


@dataclass(frozen=True, slots=True)
class Surprise:
    """Trials of one kind with the same unexpected outcome of one check. `first`: the trial that is named, with its
    `finding`. `trials`: their number. `replay`: the first one's command."""

    first: Trial
    finding: Finding
    trials: int
    replay: str

    @property
    def kind(self) -> str:
        """Rules, world and role, as in the other tables."""
        world = "simulated" if self.first.world == "simulated" else "live"
        role = ["control"] if self.first.control else []
        return ", ".join([*role, world, self.first.rules])


def surprises_of(analysis: Analysis, replay: Callable[[str], str]) -> tuple[Surprise, ...]:
    """The surprises of a store, by scenario. Trials with a planted bug are meant to surprise and are left out.
    `replay`: returns the command for a trial."""
    outcomes: dict[str, list[TrialOutcome]] = {}
    for each in analysis.outcomes:
        outcomes.setdefault(each.trial, []).append(each)
    found: dict[tuple[object, ...], list[tuple[Trial, Finding]]] = {}
    for trial in sorted(analysis.trials, key=lambda each: (each.scenario, each.seed, each.id)):
        if trial.plant is not None:
            continue
        for finding in findings_of(trial, outcomes.get(trial.id, [])):
            if finding.surprising:
                kind = (trial.scenario, trial.control, trial.world, trial.rules, finding.outcome.check, finding.said)
                found.setdefault(kind, []).append((trial, finding))
    return tuple(Surprise(*alike[0], len(alike), replay(alike[0][0].id)) for alike in found.values())
