"""Live trials: real processes on a real server. Few, because each takes real seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest
from decided import undisturbed

from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import load
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

#: Fetchers that take long to stop: joins surely meet owners that have not let go, on any machine.
SLOW = {"fetcher_stop_ms": "1000"}

#: A session as short as a busy machine allows, and a cut that surely outlasts it either way.
SHORT = {"session_timeout_ms": "1500", "cut_ms": "4600"}


def live(name: str, **plan: object) -> Plan:
    return api.make_plan(name, world="processes", **plan)  # type: ignore[arg-type]


ZOMBIE = live("zombie")
BLUNT = live("zombie", plant="pause-that-does-not-bite")
LOST_REPLY = live("lost-reply")
SERVER_KILL = live("servers")
SPLIT_BRAIN = live("split-brain")
CUTS = {way: live("cut", settings={**SHORT, "way": way}) for way in ("both", "to_server", "to_client")}
AS_EXPECTED = [
    SPLIT_BRAIN,  # three servers, one of which lags
    SERVER_KILL,
    live("split-brain", control=True),
    *CUTS.values(),
    ZOMBIE,
    live("zombie", control=True),
    live("zombie", rules="shipped"),
    live("zombie", settings={"pause_ms": "500"}),
    live("crash"),
    live("crash", control=True),
    live("leave"),
    LOST_REPLY,
    live("expiry"),
]
PLANTED = {
    "ignore-claim-conflict": "belief_overlap",
    "work-through-rebalance": "effect_overlap",
    "persistent-registration": "registration",
    "recorder-loses-releases": "registry_overlap",
    "never-claim-last": "unowned_window",
}


def planted(plant: str) -> Plan:
    return live("zombie", control=True, plant=plant, settings=SLOW)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, api.TrialResult]:
    """Plan's id -> its result: all trials of this module, four at a time."""
    return undisturbed([*AS_EXPECTED, BLUNT, *map(planted, PLANTED)], tmp_path_factory.mktemp("store"), 4)


def told(result: api.TrialResult) -> str:
    """A result as people need it when it is not the expected one."""
    findings = (f"{name}: {finding.outcome}: {finding.why}" for name, finding in result.findings.items())
    return "\n".join([str(result.folder), *findings])


def proofs(result: api.TrialResult, fault: str) -> list[str]:
    """What proves that faults of this name bit."""
    events = load(result.folder).events
    return [str(each.of("proof")) for each in events if each.kind is Kind.FAULT_BIT and each.of("fault") == fault]


class TestTrials:
    """One sweep, looked at from all sides."""

    @pytest.mark.parametrize("plan", AS_EXPECTED, ids=lambda plan: plan.trial_id)
    def test_it_comes_out_as_expected(self, results: Mapping[str, api.TrialResult], plan: Plan) -> None:
        result = results[plan.trial_id]
        assert result.status == api.TrialStatus.AS_EXPECTED, told(result)

    @pytest.mark.parametrize(("plant", "check"), PLANTED.items())
    def test_a_planted_bug_is_caught(self, results: Mapping[str, api.TrialResult], plant: str, check: str) -> None:
        result = results[planted(plant).trial_id]
        assert result.findings[check].outcome is Outcome.VIOLATED, told(result)

    def test_a_fault_that_did_not_bite_proves_no_absence(self, results: Mapping[str, api.TrialResult]) -> None:
        findings = results[BLUNT.trial_id].findings
        assert {finding.outcome for finding in findings.values()} == {Outcome.UNKNOWN}

    def test_a_zombie_s_history_has_all_layers(self, results: Mapping[str, api.TrialResult]) -> None:
        result = results[ZOMBIE.trial_id]
        assert {event.layer for event in load(result.folder).events} == set(Layer)
        longest_us = result.findings["belief_overlap"].measures["longest_us"]
        assert 500_000 < longest_us < 6_000_000  # the pause, less the session's remainder

    def test_a_lagging_server_shows_a_member_the_past(self, results: Mapping[str, api.TrialResult]) -> None:
        result = results[SPLIT_BRAIN.trial_id]
        (proof,) = proofs(result, "lag")
        assert "it shows zxid" in proof
        decided = [event for event in load(result.folder).events if event.kind is Kind.DECIDED]
        newest = next(event for event in decided if event.of("members") == 6)
        assert any(each.actor == "m1" and each.of("members") == 5 and each.at_us > newest.at_us for each in decided)

    def test_sessions_outlive_the_leader_that_is_killed(self, results: Mapping[str, api.TrialResult]) -> None:
        result = results[SERVER_KILL.trial_id]
        (proof,) = proofs(result, "server-kill")
        assert proof.endswith("ended by signal 9")
        events = load(result.folder).events
        (began,) = (event for event in events if event.kind is Kind.FAULT_BEGAN)
        assert began.of("leads") is True
        members = {event.actor for event in events if event.kind is Kind.MEMBER_STARTED}
        moved = {each.actor for each in events if each.kind is Kind.CONNECTED and each.at_us > began.at_us} & members
        assert moved, "nobody was connected to the leader"
        assert not any(event.kind is Kind.EXPIRED for event in events)

    @pytest.mark.parametrize("way", CUTS)
    def test_a_cut_costs_the_member_its_session(self, results: Mapping[str, api.TrialResult], way: str) -> None:
        result = results[CUTS[way].trial_id]
        (proof,) = proofs(result, "cut")
        ways = {"both": "to the server and to the client", "to_server": "to the server", "to_client": "to the client"}
        assert f"what goes {ways[way]}; " in proof
        assert result.findings["zombie_overlap"].outcome is Outcome.VIOLATED

    def test_who_loses_the_reply_to_a_claim_claims_again(self, results: Mapping[str, api.TrialResult]) -> None:
        result = results[LOST_REPLY.trial_id]
        (proof,) = proofs(result, "lose-reply")
        assert proof.endswith("swallowed, connection broken; it told of a znode created in /consumers/g1/owners/")
        events = [event for event in load(result.folder).events if event.actor == "m1"]
        lost = next(index for index, event in enumerate(events) if event.kind is Kind.INFO)
        asked = next(event for event in events if event.id == ("m1", events[lost].of("of")))
        assert asked.of("op") == "create"
        assert str(asked.of("path")).startswith("/consumers/g1/owners/t1/")
        assert any(
            event.kind is Kind.INVOKED and event.of("path") == asked.of("path") and event.of("op") == asked.of("op")
            for event in events[lost + 1 :]
        )


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, what
        time.sleep(0.02)


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names something in `folder`."""
    running = psutil.process_iter(["cmdline"])
    return [each.pid for each in running if any(str(folder) in part for part in each.info["cmdline"] or ())]


@pytest.mark.parametrize(("name", "servers", "processes"), [("zombie", 1, 3), ("split-brain", 3, 2)])
def test_killing_the_runner_leaves_nothing(tmp_path: Path, name: str, servers: int, processes: int) -> None:
    script = (
        "import sys; from pathlib import Path; from rebalance_lab.trials import api\n"
        "api.run(api.make_plan(sys.argv[2], world='processes'), Path(sys.argv[1]))"
    )
    store = tmp_path / "store"
    runner = subprocess.Popen([sys.executable, "-c", script, str(store), name])
    try:

        def bitten() -> bool:
            return any(Kind.FAULT_BIT.value.encode() in file.read_bytes() for file in store.glob("*/runner.jsonl"))

        eventually(bitten, "the fault never bit", timeout_s=120)
        children = [pid for pid in processes_of(store) if pid != runner.pid]
        assert len(children) == servers + processes  # one of them stopped, or lagging
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    eventually(lambda: not processes_of(store), "processes outlived their runner")
    assert not list(store.glob("*/trial.json"))  # a trial that was cut off does not count


@pytest.mark.parametrize(("way", "name"), [("run", "zombie"), ("run", "split-brain"), ("sweep", "zombie")])
def test_ctrl_c_ends_everything_at_once(tmp_path: Path, way: str, name: str) -> None:
    store = tmp_path / "store"
    arguments = [name, "--world", "processes", "--store", str(store)]
    arguments += ["--seeds", "3"] if way == "sweep" else []
    lab = subprocess.Popen(
        [sys.executable, "-m", "rebalance_lab", way, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: bool(list(store.glob("*/m1.jsonl"))), "no member ever started", timeout_s=120)
        os.killpg(lab.pid, signal.SIGINT)  # as a terminal does: the whole foreground group
        _, errors = lab.communicate(timeout=60)
    finally:
        lab.kill()
        lab.wait()
    assert (lab.returncode, errors.count("\n")) == (130, 1), errors
    assert "interrupted" in errors
    eventually(lambda: not processes_of(store), "processes outlived Ctrl-C")
    assert not list(store.glob("*/trial.json"))
