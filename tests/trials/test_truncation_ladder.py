"""The truncation ladder: each schedule against all five sets of rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from as_expected import played
from thorough import usual
from truncation_plans import ALONE, CURED, CUT_OFF, LATE_ORDER, MISSED_EPOCH

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE
from rebalance_lab.subjects.replication.subject import BrokerNode, ReplicationLab
from rebalance_lab.subjects.replication.tracker import ReplicationTracker
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.handles import SimulatedNode
from rebalance_lab.trials.stages.simulated.stage import simulate

LADDER = list(ReplicationRules)


def run(rules: str, settings: dict[str, str], seed: int = 1, *, control: bool = False) -> dict[str, Finding]:
    """What the checks find; everything comes out as expected."""
    _, found = played(make_plan("truncation", rules=rules, seed=seed, control=control, settings=settings))
    return found


#: With which seeds the default tier plays each schedule, and with which the slow one.
MORE = range(3, usual(4, 11))
SEEDS = [range(1, usual(2, 3)), pytest.param(MORE, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]


@pytest.mark.parametrize("seeds", SEEDS, ids=["few", "more"])
@pytest.mark.parametrize(
    ("settings", "check", "lasts_to"),
    [
        (CUT_OFF, "lost_write", ReplicationRules.HIGH_WATERMARK),
        (ALONE, "replica_divergence", ReplicationRules.KIP_101),
        (LATE_ORDER, "lost_write", ReplicationRules.KIP_320_FIRST_TRY),
        pytest.param(
            {**LATE_ORDER, "min_isr": "2"}, "lost_write", ReplicationRules.KIP_320_FIRST_TRY, marks=pytest.mark.slow
        ),
    ],
    ids=["cut-off", "alone", "late-order", "late-order-min-isr"],
)
@pytest.mark.parametrize("rules", LADDER)
def test_a_rung_of_the_ladder(
    rules: ReplicationRules, settings: dict[str, str], check: str, lasts_to: str, seeds: range
) -> None:
    falls = LADDER.index(rules) <= LADDER.index(ReplicationRules(lasts_to))
    for seed in seeds:
        outcome = run(rules, settings, seed)[check].outcome
        assert outcome is (Outcome.VIOLATED if falls else Outcome.CLEAN), f"seed {seed}"


@pytest.mark.parametrize("min_isr", ["1", "2"])
@pytest.mark.parametrize("seed", [1, 2, 22, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE)])
def test_a_leader_that_has_missed_an_epoch_acknowledges_what_nobody_else_has(min_isr: str, seed: int) -> None:
    """The explorer's nine steps with whole brokers: KIP-320 as Kafka has it, and its cure. min.insync.replicas does not
    help: two are in sync, according to ZooKeeper."""
    settings = {**MISSED_EPOCH, "min_isr": min_isr}
    found = run("kip-320", settings, seed)
    assert (found["ahead_of_isr"].outcome, found["lost_write"].outcome) == (Outcome.VIOLATED, Outcome.VIOLATED)
    assert run("kip-320", {**CURED, "min_isr": min_isr}, seed)["lost_write"].outcome is Outcome.CLEAN


def test_a_pause_that_comes_while_a_record_is_under_way_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live, the runner's pause may come so late that the client has written again."""
    under_way = iter([True, True, False])
    monkeypatch.setattr(ReplicationLab, "write_under_way", lambda _: next(under_way))
    history, _ = simulate(make_plan("truncation", rules="high-watermark", settings=CUT_OFF))
    pauses = [event for event in events_of(history, Kind.FAULT_BEGAN) if event.of("fault") == "pause"]
    assert (len(pauses), judge(history)["lost_write"].outcome) == (3, Outcome.VIOLATED)


def test_a_pause_begins_anew_only_when_the_last_one_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container takes time to go on. Meanwhile the runner may hear of a record that was acknowledged before."""
    under_way = iter([True, True, False])
    monkeypatch.setattr(ReplicationLab, "write_under_way", lambda _: next(under_way))
    monkeypatch.setattr(ReplicationLab, "acknowledged", property(lambda lab: lab._replicas.acknowledged - 1))
    resume = SimulatedNode.resume

    async def late(node: SimulatedNode) -> str:
        await node._kernel.sleep(300_000)
        return await resume(node)

    monkeypatch.setattr(SimulatedNode, "resume", late)
    history, _ = simulate(make_plan("truncation", rules="high-watermark", settings=CUT_OFF))
    assert judge(history)["lost_write"].outcome is Outcome.VIOLATED


def test_a_link_is_cut_when_both_processes_say_so() -> None:
    """The runner reads it later, and meanwhile the leader may have written."""
    tracker = ReplicationTracker()
    lab = cast("ReplicationLab", SimpleNamespace(_replicas=tracker, tasks=SimpleNamespace(now_us=lambda: 900)))
    one, other = (cast("BrokerNode", SimpleNamespace(actor=name)) for name in ("b1", "b2"))
    assert ReplicationLab.cut_us(lab, one, other) == 900
    for actor, peer, at_us in (("b1", "b2", 500), ("b2", "b1", 700), ("b2", "b3", 800)):
        tracker.feed(Event(actor, 0, at_us, Layer.OP, Kind.LINK_SET, detail={"peer": peer, "number": 1}))
    assert ReplicationLab.cut_us(lab, one, other) == 700


def test_a_write_is_under_way_until_it_is_answered() -> None:
    tracker = ReplicationTracker()
    seen = []
    for kind in (Kind.INVOKED, Kind.OK, Kind.INVOKED, Kind.INFO):
        tracker.feed(Event("c1", 0, 0, Layer.OP, kind, detail={"op": PRODUCE, "number": 1}))
        seen.append(tracker.writing)
    assert seen == [True, False, True, False]


@pytest.mark.parametrize("settings", [CUT_OFF, ALONE, LATE_ORDER], ids=["cut-off", "alone", "late-order"])
@pytest.mark.parametrize("rules", [ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101])
def test_where_nothing_fails_the_old_rules_keep_everything(rules: str, settings: dict[str, str]) -> None:
    found = run(rules, settings, control=True)
    assert {finding.outcome for finding in found.values()} == {Outcome.CLEAN}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokers": "3"}, "brokers=3: must be 4"),
        ({"unclean": "true"}, "unclean=true: must be false"),
        ({"schedule": "alone"}, "unclean=false: must be true"),
        ({**ALONE, "min_isr": "2"}, "min_isr=2: must be 1"),
        ({"session_timeout_ms": "10000"}, "session_timeout_ms=10000: too long"),
        ({**ALONE, "cut_ms": "3500"}, "cut_ms=3500: must be above 3500"),
        ({**ALONE, "messages": "200"}, "messages=200: too few"),
        ({"forget": "true"}, "forget=true: only with schedule=missed-epoch"),
        ({"schedule": "late-order"}, "idempotent=false: must be true"),
        ({**LATE_ORDER, "way_ms": "9000"}, "way_ms=9000: must be 9500 at least"),
        ({"schedule": "missed-epoch"}, "request_timeout_ms=3000: must be 6000 at least"),
    ],
)
def test_settings_with_which_nothing_would_happen(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        make_plan("truncation", settings=settings)


def test_the_missed_epoch_is_of_the_last_rules() -> None:
    with pytest.raises(PlanError, match="rules=kip-279: must be kip-320; late-order is for the others"):
        make_plan("truncation", rules="kip-279", settings=MISSED_EPOCH)
