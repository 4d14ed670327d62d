"""Trials with three brokers in containers: docker kills and pauses them, links are cut, power is lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from decided import decided
from thorough import THOROUGH
from truncation_plans import ALONE, CUT_OFF, LATE_ORDER, MISSED_EPOCH

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, load
from rebalance_lab.history.views import events_of
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.world.containers.engine import Engine

pytestmark = [pytest.mark.docker, pytest.mark.timeout(580)]


def contained(name: str, **settings: str) -> Plan:
    return api.make_plan(name, world="containers", settings=settings)


def truncation(rules: str, settings: dict[str, str]) -> Plan:
    return api.make_plan("truncation", world="containers", rules=rules, settings=settings)


SYNCED = {"flush_messages": "1"}

#: A container must be back while the controller is paused, and on a busy machine it takes more than five seconds.
SLOW_RESTART = {"pause_ms": "12000", "session_timeout_ms": "36000"}

#: By what each is to show: the plan, and the fault whose proof it must have.
PLANS = {
    "E1: races for the controllership": (contained("controller-race", brokers="3"), "expire"),
    "E2: one controller after another": (contained("controller-failover"), "kill"),
    "E3: a controller of 1.1 that wakes": (contained("zombie-controller", form="1.1"), "pause"),
    "E3: one of 2.1": (contained("zombie-controller"), "pause"),
    "E5: the next leader": (contained("isr-election"), "kill"),
    "E6: pauses": (contained("committed-data", fault="pause"), "pause"),
    "E6: cuts": (contained("committed-data", fault="cut", **SYNCED), "link-cut"),
    "E6: losses of power": (contained("committed-data", fault="power-loss"), "power-loss"),
    "the truncation ladder: high-watermark": (truncation("high-watermark", CUT_OFF), "link-cut"),
    "the truncation ladder: kip-101": (truncation("kip-101", ALONE), "link-cut"),
    "the truncation ladder: kip-279": (truncation("kip-279", LATE_ORDER), "link-cut"),
    "the truncation ladder: kip-320": (truncation("kip-320", MISSED_EPOCH), "link-cut"),
    "E5c: an ISR for each partition": (contained("isr-per-partition"), "link-cut"),
    "a leader that drops followers at once": (contained("leader-start"), "slow-link"),
    "an ISR that flaps": (contained("isr-flap"), "kill"),
    "an ISR that flaps in bursts": (contained("message-lag"), "bursts"),
    "a frozen ISR": (contained("frozen-isr"), "link-cut"),
    "a bounce that is missed": (contained("missed-bounce", **SLOW_RESTART), "pause"),
    "a controller that does not run": (contained("idle-controller"), "server-kill"),
    "the last replica standing": (contained("last-replica-standing"), "power-loss"),
    "E7: the last in sync leads": (contained("all-replicas-down"), "kill"),
    "E7: the first to return leads": (contained("all-replicas-down", unclean="true"), "kill"),
}

#: Anomalies beside the claims. A usual run plays them in the simulator (test_field_anomalies.py), a thorough one here.
RARE = (
    "a leader that drops followers at once",
    "an ISR that flaps",
    "an ISR that flaps in bursts",
    "a frozen ISR",
    "a bounce that is missed",
    "the last replica standing",
)
if not THOROUGH:
    PLANS = {name: each for name, each in PLANS.items() if name not in RARE}


@pytest.fixture(scope="module")
def results(docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, api.TrialResult]:
    assert docker_engine.session  # there is one, or all of this is skipped
    return decided((plan for plan, _ in PLANS.values()), tmp_path_factory.mktemp("store"), 2)


def proofs(history: History, fault: str) -> list[str]:
    return [str(event.of("proof")) for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == fault]


@pytest.mark.parametrize(("plan", "fault"), PLANS.values(), ids=PLANS)
class TestReplicated:
    def test_it_comes_out_as_expected(self, results: Mapping[str, api.TrialResult], plan: Plan, fault: str) -> None:
        result = results[plan.trial_id]
        findings = [f"{name}: {finding.outcome}: {finding.why}" for name, finding in result.findings.items()]
        assert result.status == api.TrialStatus.AS_EXPECTED, "\n".join([str(result.folder), *findings])

    def test_its_fault_has_a_proof(self, results: Mapping[str, api.TrialResult], plan: Plan, fault: str) -> None:
        assert proofs(load(results[plan.trial_id].folder), fault)

    def test_every_broker_had_a_container_and_an_address_of_its_own(
        self, results: Mapping[str, api.TrialResult], plan: Plan, fault: str
    ) -> None:
        listening = events_of(load(results[plan.trial_id].folder), Kind.LISTENING)
        addresses = {(event.actor, event.of("host")) for event in listening}
        brokers = plan.number("brokers")
        assert {actor for actor, _ in addresses} == {f"b{number}" for number in range(1, brokers + 1)}
        assert len({host for _, host in addresses}) == len(addresses) == brokers


def test_what_was_held_back_and_what_was_lost_is_told(results: Mapping[str, api.TrialResult]) -> None:
    cut, _ = PLANS["E6: cuts"]
    power, _ = PLANS["E6: losses of power"]
    assert all("bytes held back" in proof for proof in proofs(load(results[cut.trial_id].folder), "link-cut"))
    assert all("bytes lost of t1-0/" in proof for proof in proofs(load(results[power.trial_id].folder), "power-loss"))
