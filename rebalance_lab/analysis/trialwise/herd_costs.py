"""What each spaced change of one history cost: the bills of `checks.bills` as rows."""

from __future__ import annotations

from rebalance_lab.analysis.results import HerdCost
from rebalance_lab.checks.change_costs import Bill, bills
from rebalance_lab.history.files import History, Trial


def herd_costs(history: History) -> list[HerdCost]:
    """The cost of each spaced change of a trial that came to rest, in their order."""
    return [_row(history.trial, bill) for bill in bills(history)]


def _row(trial: Trial, bill: Bill) -> HerdCost:
    change, paid, told, known = bill.change, bill.cost, bill.expected, bill.doubt is None
    return HerdCost(
        trial=trial.id,
        scenario=trial.scenario,
        world=trial.world,
        rules=trial.rules,
        seed=trial.seed,
        control=trial.control,
        plant=trial.plant,
        group=change.phase.group or "",
        change=change.kind,
        begin_us=change.phase.at_us,
        end_us=change.rest.at_us,
        doubt=bill.doubt,
        before=change.before,
        members=told.members,
        retries=len(bill.conflicts),
        reads=paid.reads,
        writes=paid.writes,
        notifications=paid.notifications,
        rebalances=paid.rebalances,
        expected_reads=None if bill.silent else told.reads,
        expected_writes=None if bill.silent else told.writes,
        expected_notifications=told.notifications if known else None,
        expected_rebalances=told.rebalances if known else None,
        added_reads=bill.added_reads,
        added_writes=bill.added_writes,
    )
