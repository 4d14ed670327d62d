"""Live trials that are run again while they are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

#: A busy machine may hold up a member, a server or docker for so long that a check cannot judge. The trial is unknown
#: then, which says nothing.
ATTEMPTS = 3


def decided(plans: Iterable[Plan], store: Path, at_once: int) -> Mapping[str, api.TrialResult]:
    """Run each plan, those that are unknown once more, up to ATTEMPTS times: the id of the plan's trial -> its last
    result. Trials with a planted bug are run once: they may be meant to be unknown."""
    waiting = {plan.trial_id: plan for plan in plans}
    found: dict[str, api.TrialResult] = {}
    for _ in range(ATTEMPTS):
        for result in api.sweep(waiting.values(), store, at_once):
            found[result.trial.id.rpartition("-")[0].rpartition("-")[0]] = result
        waiting = {
            name: plan
            for name, plan in waiting.items()
            if not plan.plant and found[name].status == api.TrialStatus.UNKNOWN
        }
    return found
