"""Live trials: real processes on a real server. Few, because each takes real seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rebalance_lab.history.checks.model import Outcome
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import load
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

pytestmark = pytest.mark.timeout(240)


#: Fetchers that take long to stop: joins surely meet owners that have not let go, on any machine.
SLOW = {"fetcher_stop_ms": "1000"}


def live(name: str, **plan: object) -> Plan:
    return api.make_plan(name, world="processes", **plan)  # type: ignore[arg-type]


def told(result: api.TrialResult) -> str:
    """A result as people need it when it is not the expected one."""
    findings = (f"{name}: {finding.outcome}: {finding.why}" for name, finding in result.findings.items())
    return "\n".join([str(result.folder), *findings])


def test_live_trials_come_out_as_expected(tmp_path: Path) -> None:
    plans = [
        live("zombie"),
        live("zombie", control=True),
        live("zombie", rules="shipped"),
        live("zombie", settings={"pause_ms": "500"}),
        live("crash"),
        live("crash", control=True),
        live("leave"),
        live("zombie", plant="pause-that-does-not-bite"),
        live("zombie", control=True, plant="ignore-claim-conflict", settings=SLOW),
        live("zombie", control=True, plant="work-through-rebalance", settings=SLOW),
        live("zombie", control=True, plant="persistent-registration", settings=SLOW),
        live("zombie", control=True, plant="recorder-loses-releases", settings=SLOW),
        live("zombie", control=True, plant="never-claim-last", settings=SLOW),
    ]
    results = {
        result.trial.id.rpartition("-")[0].rpartition("-")[0]: result for result in api.sweep(plans, tmp_path, 4)
    }
    assert len(results) == len(plans)
    for plan in plans[:7]:
        result = results[plan.trial_id]
        assert result.status == api.AS_EXPECTED, told(result)
    blunt = results[plans[7].trial_id]
    assert {finding.outcome for finding in blunt.findings.values()} == {Outcome.UNKNOWN}
    caught = ["belief_overlap", "effect_overlap", "registration", "registry_overlap", "unowned_window"]
    for plan, check in zip(plans[8:], caught, strict=True):
        assert results[plan.trial_id].findings[check].outcome is Outcome.VIOLATED, plan.plant

    zombie = load(results[plans[0].trial_id].folder)
    assert {event.layer for event in zombie.events} == set(Layer)
    finding = results[plans[0].trial_id].findings["belief_overlap"]
    assert 500_000 < finding.measures["longest_us"] < 6_000_000  # the pause, less the session's remainder


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, what
        time.sleep(0.02)


def processes_of(folder: Path) -> list[int]:
    """The processes whose command line names something in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command:
                found.append(int(entry.name))
    return found


def test_killing_the_runner_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from rebalance_lab.trials import api\n"
        "api.run(api.make_plan('zombie', world='processes'), Path(sys.argv[1]))"
    )
    store = tmp_path / "store"
    runner = subprocess.Popen([sys.executable, "-c", script, str(store)])
    try:

        def paused() -> bool:
            return any(Kind.FAULT_BIT.value.encode() in file.read_bytes() for file in store.glob("*/runner.jsonl"))

        eventually(paused, "the pause never began")
        children = [pid for pid in processes_of(store) if pid != runner.pid]
        assert len(children) == 4  # a server and three members, one of them stopped
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    eventually(lambda: not processes_of(store), "processes outlived their runner")
    assert not list(store.glob("*/trial.json"))  # a trial that was cut off does not count


@pytest.mark.parametrize("way", ["run", "sweep"])
def test_ctrl_c_ends_everything_at_once(tmp_path: Path, way: str) -> None:
    store = tmp_path / "store"
    arguments = ["zombie", "--world", "processes", "--store", str(store)]
    arguments += ["--seeds", "3"] if way == "sweep" else []
    lab = subprocess.Popen(
        [sys.executable, "-m", "rebalance_lab.cli.main", way, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: bool(list(store.glob("*/m1.jsonl"))), "no member ever started")
        os.killpg(lab.pid, signal.SIGINT)  # as a terminal does: the whole foreground group
        _, errors = lab.communicate(timeout=20)
    finally:
        lab.kill()
        lab.wait()
    assert (lab.returncode, errors.count("\n")) == (130, 1), errors
    assert "interrupted" in errors
    eventually(lambda: not processes_of(store), "processes outlived Ctrl-C")
    assert not list(store.glob("*/trial.json"))
