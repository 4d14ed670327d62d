"""Simulated trials end to end: the scenarios' expectations, the planted bugs, determinism."""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import subprocess
import sys
import traceback
from multiprocessing import popen_spawn_posix
from pathlib import Path
from typing import Any

import pytest
from thorough import usual

from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.checks.model import Outcome, Planted
from rebalance_lab.faults.pause import PauseBug
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, load, read_trial
from rebalance_lab.history.recorder import RecorderFailed
from rebalance_lab.kernel.interruption import Interrupted, interruptible
from rebalance_lab.subjects.broker_log.subject import ONE_BROKER
from rebalance_lab.subjects.replication.subject import REPLICATED, ClientPlant
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan, plants_of, scenario
from rebalance_lab.trials.stage import GaveUp, ObservedSink
from rebalance_lab.trials.stages.simulated.stage import simulate

FAULTY_SEEDS = range(usual(15, 40))
#: Fetchers that take as long to stop as 0.8's did: joins then meet owners that have not let go.
SLOW = {"fetcher_stop_ms": "100"}
CONTROL_SEEDS = [range(20), pytest.param(range(20, usual(60, 200)), marks=pytest.mark.slow)]


def outcomes(history: History) -> dict[str, Outcome]:
    return {name: finding.outcome for name, finding in judge(history).items()}


def anomalies(history: History) -> dict[str, Outcome]:
    """The outcomes of the checks that look for an anomaly: a control shows none."""
    return {name: outcome for name, outcome in outcomes(history).items() if CHECKS[name].statement is None}


def surprises(history: History, plan: Plan) -> dict[str, Outcome]:
    """The outcomes that the plan's scenario does not expect."""
    expected = scenario(plan.scenario).expects(plan)
    return {name: outcome for name, outcome in outcomes(history).items() if outcome is not (expected[name] or outcome)}


def run(name: str, **plan: object) -> History:
    history, _ = simulate(make_plan(name, **plan))  # type: ignore[arg-type]
    return history


@pytest.mark.parametrize("rules", ["described", "shipped"])
@pytest.mark.parametrize("name", ["zombie", "crash"])
def test_every_seed_comes_out_as_expected(name: str, rules: str) -> None:
    for seed in FAULTY_SEEDS:
        plan = make_plan(name, seed=seed, rules=rules)
        history, _ = simulate(plan)
        assert surprises(history, plan) == {}, f"seed {seed}"


@pytest.mark.parametrize("seeds", CONTROL_SEEDS, ids=str)
@pytest.mark.parametrize("name", ["zombie", "crash", "leave"])
def test_the_control_is_clean(name: str, seeds: range) -> None:
    for seed in seeds:
        assert set(anomalies(run(name, seed=seed, control=True)).values()) == {Outcome.CLEAN}, f"seed {seed}"


def test_a_conflict_at_a_join_heals_by_itself() -> None:
    for seed in FAULTY_SEEDS:
        history = run("zombie", seed=seed, control=True, settings=SLOW)
        assert any(event.kind is Kind.ATTEMPT_FAILED for event in history.events), f"seed {seed}"
        assert set(anomalies(history).values()) == {Outcome.CLEAN}, f"seed {seed}"


def test_a_clean_leave_does_no_harm() -> None:
    for seed in FAULTY_SEEDS:
        found = anomalies(run("leave", seed=seed))
        assert set(found.values()) == {Outcome.CLEAN}, f"seed {seed}"


def test_a_short_pause_makes_no_zombie() -> None:
    for seed in FAULTY_SEEDS:
        found = anomalies(run("zombie", seed=seed, settings={"pause_ms": "500"}))
        assert set(found.values()) == {Outcome.CLEAN}, f"seed {seed}"


def test_a_pause_that_did_not_bite_proves_nothing() -> None:
    history = run("zombie", plant="pause-that-does-not-bite")
    assert any(event.kind is Kind.FAULT_BIT for event in history.events), "the plant lies"
    assert set(anomalies(history).values()) == {Outcome.UNKNOWN}


def test_a_pause_of_two_thirds_of_the_session_costs_it_nearly_always() -> None:
    """With one server: the member gives its connection up, and waits for 1 to 2 s. In an ensemble it
    goes to another server at once, and may be in time, or so late that it reports work only once: that is unknown."""
    plan = make_plan("zombie", settings={"pause_ms": "1334"})
    assert scenario("zombie").expects(plan)["effect_overlap"] is None
    alone = [outcomes(run("zombie", seed=seed, settings={"pause_ms": "1334"})) for seed in range(20)]
    assert {found["effect_overlap"] for found in alone} == {Outcome.VIOLATED}
    several = [outcomes(run("zombie", seed=seed, settings={"pause_ms": "1334", "servers": "3"})) for seed in range(20)]
    assert {found["effect_overlap"] for found in several} == {Outcome.CLEAN, Outcome.VIOLATED, Outcome.UNKNOWN}
    assert all(
        found["zombie_overlap"] is Outcome.UNKNOWN for found in several if found["effect_overlap"] is Outcome.UNKNOWN
    )


def test_a_pause_of_half_the_session_may_go_either_way() -> None:
    plan = make_plan("zombie", settings={"pause_ms": "1000"})
    assert scenario("zombie").expects(plan)["effect_overlap"] is None
    kinds = {outcomes(run("zombie", seed=seed, settings={"pause_ms": "1000"}))["effect_overlap"] for seed in range(20)}
    assert kinds == {Outcome.CLEAN, Outcome.VIOLATED}


def test_a_group_that_does_not_rest_proves_nothing() -> None:
    history = run("zombie", control=True, settings={"rest_timeout_ms": "100"})
    assert any(event.kind is Kind.REST_MISSED for event in history.events)
    assert set(anomalies(history).values()) == {Outcome.UNKNOWN}


@pytest.mark.parametrize(
    ("check", "planted"),
    [(name, planted) for name, check in CHECKS.items() for planted in check.plants],
    ids=lambda each: each.bug if isinstance(each, Planted) else each,
)
def test_every_planted_bug_is_caught(check: str, planted: Planted) -> None:
    trial: dict[str, object] = {"control": planted.control, "settings": planted.settings}
    assert outcomes(run(planted.scenario, plant=planted.bug, **trial))[check] is Outcome.VIOLATED
    assert outcomes(run(planted.scenario, **trial))[check] is Outcome.CLEAN


def test_every_planted_bug_has_a_check_that_catches_it() -> None:
    """Two need another test: a pause that never begins is a fault (test_live_trials.py), and a library that
    asks for one acknowledgement runs live only (test_soak.py)."""
    caught = {planted.bug for check in CHECKS.values() for planted in check.plants}
    elsewhere = {PauseBug.DOES_NOT_BITE, ClientPlant.ACKS_ONE}
    assert caught | elsewhere == {*plants_of(ZK_GROUP), *plants_of(ONE_BROKER), *plants_of(REPLICATED)}


HASH_SCRIPT = """
import sys
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.trials.stage import GaveUp
for name in ("zombie", "crash"):
    for seed in (1, 2):
        print(simulate(make_plan(name, seed=seed))[0].trial.history_sha256)
"""


def test_the_same_seed_gives_the_same_history_anywhere() -> None:
    def hashes(hash_seed: str) -> list[str]:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", HASH_SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.split()

    first, second = hashes("1"), hashes("2")
    assert first == second
    assert len(set(first)) == 4
    assert run("zombie", seed=1).trial.history_sha256 == first[0]


def test_a_stored_trial_is_read_back_whole_and_replaced_by_itself(tmp_path: Path) -> None:
    plan = make_plan("zombie", seed=3)
    result = api.run(plan, tmp_path)
    assert result.status == "as expected"
    history = load(result.folder)
    assert history.trial == read_trial(result.folder) == result.trial
    assert history.events == run("zombie", seed=3).events
    assert api.plan_of(result.folder) == plan
    again = api.run(plan, tmp_path)
    assert again.folder == result.folder
    assert again.trial.history_sha256 == result.trial.history_sha256
    assert [path.name for path in tmp_path.iterdir()] == [result.folder.name]


def test_a_sweep_on_two_processes_is_the_same_as_one_by_one(tmp_path: Path) -> None:
    plans = [make_plan("crash", seed=seed) for seed in range(20)]
    swept = {result.trial.seed: result.trial.history_sha256 for result in api.sweep(plans, tmp_path, processes=2)}
    assert swept == {plan.seed: simulate(plan)[0].trial.history_sha256 for plan in plans}


def test_a_plant_in_the_history_makes_a_surprise(tmp_path: Path) -> None:
    result = api.run(make_plan("zombie", control=True, plant="ignore-claim-conflict", settings=SLOW), tmp_path)
    assert result.status == "surprise"


def test_an_event_that_cannot_be_written_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member survives any exception in a rebalance; the recorder's must not be one of them."""
    write = ObservedSink.write

    def fail_once(sink: ObservedSink, event: Event) -> None:
        if (event.actor, event.kind) == ("m2", Kind.REBALANCE_BEGAN):
            raise OSError("No space left on device")
        write(sink, event)

    monkeypatch.setattr(ObservedSink, "write", fail_once)
    with pytest.raises(RecorderFailed, match="No space left on device"):
        run("zombie")


def test_an_error_ends_with_the_command_that_runs_the_trial_again(tmp_path: Path) -> None:
    never_left = {"fetcher_stop_ms": "9000000", "together": "true"}
    plan = make_plan("leave", rules="shipped", seed=3, plant="ignore-watch", settings=never_left)
    with pytest.raises(GaveUp) as failed:
        api.run(plan, tmp_path)
    assert "".join(traceback.format_exception(failed.value)).splitlines()[-1] == (
        "again: rebalance-lab run leave --world simulated --rules shipped --seed 3 "
        "--set together=true --set fetcher_stop_ms=9000000 --set plant=ignore-watch"
    )


def test_a_scenario_must_expect_something_of_every_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = api.run(make_plan("crash"), tmp_path)
    forgetful = dataclasses.replace(scenario("crash"), expects=lambda _plan: {"belief_overlpa": Outcome.CLEAN})
    monkeypatch.setattr(api, "scenario", lambda _name: forgetful)
    with pytest.raises(ValueError, match="look at: belief_overlap, belief_overlpa"):
        assert result.status


def warn(plan: Plan) -> int:
    logging.getLogger("rebalance_lab.trials").info("of no use to anybody")
    logging.getLogger("rebalance_lab.trials").warning("of_use")
    return plan.seed


def test_what_processes_of_a_sweep_warn_of_is_no_part_of_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(api.each_of([api.make_plan("leave", seed=7)], warn, 1)) == [7]
    said = capfd.readouterr()
    assert said.out == ""
    assert "of_use" in said.err
    assert "of no use" not in said.err


def starts_us(name: str, **settings: str) -> list[int]:
    """From the last phase before it to the start of each member."""
    history, _ = simulate(make_plan(name, settings=settings))
    begun_us = [event.at_us for event in history.events if event.kind is Kind.PHASE]
    started_us = [event.at_us for event in history.events if event.kind is Kind.MEMBER_STARTED]
    return [each - max(begin for begin in begun_us if begin <= each) for each in started_us]


def test_a_simulated_process_takes_time_to_start() -> None:
    waits_us = starts_us("walkthrough")
    assert len(waits_us) == 4 == len(set(waits_us))
    assert all(250_000 <= each <= 550_000 for each in waits_us)
    assert starts_us("walkthrough", start_min_us="0", start_max_us="0") == [0] * 4


@pytest.mark.parametrize(("per_process", "starts"), [("25", 1), ("4", 2)])
def test_members_that_share_a_process_start_together(per_process: str, starts: int) -> None:
    assert len(set(starts_us("herd", per_process=per_process)[:8])) == starts


def test_a_signal_while_a_worker_starts_waits_until_it_knows_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is started, and not told what to do, ends with a traceback."""
    told: list[object] = []
    launch = popen_spawn_posix.Popen._launch  # type: ignore[attr-defined]

    def interrupted(self: popen_spawn_posix.Popen, process: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        launch(self, process)
        told.append(process)

    monkeypatch.setattr(popen_spawn_posix.Popen, "_launch", interrupted)
    with interruptible(), pytest.raises(Interrupted):
        list(api.sweep([make_plan("leave")], tmp_path, processes=1))
    assert len(told) == 1
