"""What one history gives to tables of many: rows of the checks' findings, of ownership, and of what changes cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from rebalance_lab.analysis.results import HerdCost, Interval, TrialOutcome, of_trial
from rebalance_lab.checks.change_costs import CostComparison, cost_comparisons
from rebalance_lab.checks.model import Finding
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.intervals import ownership_intervals


def outcomes_of(trial: Trial, findings: Mapping[str, Finding]) -> tuple[TrialOutcome, ...]:
    """What every check reports of the trial. `findings`: from `checks.judge`."""
    return tuple(
        TrialOutcome(
            **of_trial(trial),
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
        Interval(trial=history.trial.id, **asdict(each) | {"layer": each.layer.value})
        for each in ownership_intervals(history)
    )


def herd_costs_of(history: History) -> tuple[HerdCost, ...]:
    """The cost of each spaced change of a trial that came to rest, in their order.

    The numbers are those by which the checks `herd_cost` and `conflict_cost` judge the trial (`checks.change_costs`):
    nothing is computed here. The measures of the checks could not carry them, because they leave out the changes in
    doubt, which the table lists with the reason.
    """
    return tuple(_herd_cost(history.trial, each) for each in cost_comparisons(history))


def _herd_cost(trial: Trial, comparison: CostComparison) -> HerdCost:
    change, cost, expected = comparison.change, comparison.cost, comparison.expected
    known, comparable = comparison.doubt is None, comparison.incomparable is None
    return HerdCost(
        **of_trial(trial),
        group=change.phase.group or "",
        change=change.kind,
        begin_us=change.phase.at_us,
        end_us=change.rest.at_us,
        doubt=comparison.doubt,
        before=change.before,
        members=expected.members,
        retries=len(comparison.conflicts),
        reads=cost.reads,
        writes=cost.writes,
        notifications=cost.notifications,
        rebalances=cost.rebalances,
        expected_reads=expected.reads if comparable else None,
        expected_writes=expected.writes if comparable else None,
        expected_notifications=expected.notifications if known else None,
        expected_rebalances=expected.rebalances if known else None,
        added_reads=comparison.added_reads,
        added_writes=comparison.added_writes,
    )
