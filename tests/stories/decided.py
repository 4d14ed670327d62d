"""Live trials that are run again while a busy machine leaves them undecided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rebalance_lab.checks.disturbances import disturbance
from rebalance_lab.history.files import load
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

#: How often a trial is run at most.
ATTEMPTS = 3


def decided(plans: Iterable[Plan], store: Path, at_once: int) -> Mapping[str, api.TrialResult]:
    """Run each plan, again while a check cannot judge its trial: the id of the plan's trial -> its last result.
    Trials with a planted bug are run once: they may be meant to be unknown."""
    return _last(
        plans, store, at_once, lambda plan, result: not plan.plant and result.status == api.TrialStatus.UNKNOWN
    )


def undisturbed(plans: Iterable[Plan], store: Path, at_once: int) -> Mapping[str, api.TrialResult]:
    """As `decided`, but run again, planted bug or not, only while a busy host costs a node its connection or session
    (`checks.disturbances`). A history that contradicts itself is not run again: that may be a mistake of the lab."""
    return _last(plans, store, at_once, lambda _plan, result: disturbance(load(result.folder)) is not None)


def _last(
    plans: Iterable[Plan], store: Path, at_once: int, again: Callable[[Plan, api.TrialResult], bool]
) -> Mapping[str, api.TrialResult]:
    waiting = {plan.trial_id: plan for plan in plans}
    found: dict[str, api.TrialResult] = {}
    for _ in range(ATTEMPTS):
        for result in api.sweep(list(waiting.values()), store, at_once):
            found[result.trial.id.rpartition("-")[0].rpartition("-")[0]] = result
        waiting = {name: plan for name, plan in waiting.items() if again(plan, found[name])}
    return found
