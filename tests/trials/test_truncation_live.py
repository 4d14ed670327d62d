"""The truncation ladder with real processes: each schedule under the last rules that it refutes and the first that it
does not."""

from __future__ import annotations

import pytest
from thorough import THOROUGH
from truncation_plans import ALONE, CURED, CUT_OFF, LATE_ORDER, MISSED_EPOCH

from rebalance_lab.checks import Outcome
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def live(rules: str, settings: dict[str, str]) -> Plan:
    return api.make_plan("truncation", world="processes", rules=rules, settings=settings)


#: What happens: the plan, the check that the schedule was made for, and what it finds.
PLANS = {
    "cut-off refutes high-watermark": (live("high-watermark", CUT_OFF), "lost_write", Outcome.VIOLATED),
    "kip-101 survives it": (live("kip-101", CUT_OFF), "lost_write", Outcome.CLEAN),
    "alone refutes kip-101": (live("kip-101", ALONE), "replica_divergence", Outcome.VIOLATED),
    "kip-279 survives it": (live("kip-279", ALONE), "replica_divergence", Outcome.CLEAN),
    "late-order refutes kip-279": (live("kip-279", LATE_ORDER), "lost_write", Outcome.VIOLATED),
    "and the first try of kip-320": (live("kip-320-first-try", LATE_ORDER), "lost_write", Outcome.VIOLATED),
    "kip-320 survives it": (live("kip-320", LATE_ORDER), "lost_write", Outcome.CLEAN),
    "missed-epoch refutes kip-320": (live("kip-320", MISSED_EPOCH), "lost_write", Outcome.VIOLATED),
    "who forgets survives it": (live("kip-320", CURED), "lost_write", Outcome.CLEAN),
}

#: The tier `docker` plays a schedule for each rule set but the first try of kip-320.
if not THOROUGH:
    PLANS = {
        name: PLANS[name]
        for name in ("cut-off refutes high-watermark", "late-order refutes kip-279", "kip-320 survives it")
    }

#: A trial is run again if the machine was too busy for a judgement.
ATTEMPTS = 3


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, api.TrialResult]:
    """Plan's id -> its result: all trials of this module, two at a time."""
    waiting = {plan.trial_id: plan for plan, _, _ in PLANS.values()}
    found: dict[str, api.TrialResult] = {}
    for _ in range(ATTEMPTS):
        for result in api.sweep(waiting.values(), tmp_path_factory.mktemp("store"), 2):
            found[result.trial.id.rpartition("-")[0].rpartition("-")[0]] = result
        waiting = {each: plan for each, plan in waiting.items() if found[each].status is api.TrialStatus.UNKNOWN}
    return found


@pytest.mark.parametrize(("plan", "check", "outcome"), PLANS.values(), ids=PLANS)
def test_it_comes_out_as_in_the_simulator(
    results: dict[str, api.TrialResult], plan: Plan, check: str, outcome: Outcome
) -> None:
    result = results[plan.trial_id]
    findings = [f"{name}: {finding.outcome}: {finding.why}" for name, finding in result.findings.items()]
    assert result.status is api.TrialStatus.AS_EXPECTED, "\n".join([str(result.folder), *findings])
    assert result.findings[check].outcome is outcome
