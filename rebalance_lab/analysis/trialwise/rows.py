"""What the checks and the intervals of one trial are as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.analysis.results import Interval, TrialOutcome
from rebalance_lab.checks.model import Finding
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.intervals import ownership_intervals


def outcomes_of(trial: Trial, findings: Mapping[str, Finding]) -> tuple[TrialOutcome, ...]:
    """What every check reports of the trial. `findings`: from `checks.judge`."""
    return tuple(
        TrialOutcome(
            trial=trial.id,
            scenario=trial.scenario,
            world=trial.world,
            rules=trial.rules,
            seed=trial.seed,
            control=trial.control,
            plant=trial.plant,
            check=check,
            outcome=finding.outcome.value,
            why=finding.why,
            witness=finding.witness,
            longest_us=finding.measures.get("longest_us", 0),
            count=finding.measures.get("count", 0),
        )
        for check, finding in findings.items()
    )


def intervals_of(history: History) -> tuple[Interval, ...]:
    """Who had which partition when, in all three layers. Raises HistoryError (`history.intervals`)."""
    return tuple(
        Interval(
            trial=history.trial.id,
            layer=each.layer.value,
            member=each.member,
            group=each.group,
            topic=each.topic,
            partition=each.partition,
            begin_us=each.begin_us,
            end_us=each.end_us,
            begin=each.begin,
            end=each.end,
        )
        for each in ownership_intervals(history)
    )
