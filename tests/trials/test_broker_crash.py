"""The broker's crash: what survives it, and that the trial is the one that was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_lab.checks import Outcome, judge
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

POWER = {"power_loss": "true"}


def run(seed: int, **settings: str) -> History:
    history, _ = simulate(make_plan("broker-crash", seed=seed, settings=settings))
    return history


@pytest.mark.parametrize("seed", range(1, 6))
def test_with_each_record_synced_a_loss_of_power_takes_none(seed: int) -> None:
    history = run(seed, **POWER, flush_messages="1")
    finding = judge(history)["lost_write"]
    assert finding.outcome is Outcome.CLEAN
    bitten = [event for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == "power-loss"]
    assert len(bitten) == 2


def test_without_a_sync_a_loss_of_power_takes_acknowledged_records() -> None:
    finding = judge(run(1, **POWER))["lost_write"]
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] > 0


def test_the_broker_starts_again_once_its_session_has_ended() -> None:
    history = run(1)
    restarts = [event for event in events_of(history, Kind.FAULT_BEGAN) if event.of("fault") == "restart"]
    assert len(restarts) == 2
    lives = {event.session for event in events_of(history, Kind.CONNECTED) if event.actor == "b1"}
    closed = {event.session: event.at_us for event in events_of(history, Kind.SESSION_CLOSED)}
    assert len(lives) == 3
    ends = sorted(closed[session] for session in lives)
    assert all(end <= restart.at_us for end, restart in zip(ends, restarts, strict=False))


def test_who_knows_the_checks_can_read_its_history(tmp_path: Path) -> None:
    """A worker of Spark's loads checks, and no roles."""
    folder = api.run(make_plan("broker-crash"), tmp_path).folder
    code = (
        "from pathlib import Path; import rebalance_lab.checks; from rebalance_lab.history.files import load; "
        f"load(Path({str(folder)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_kills_need_writes_between_them() -> None:
    with pytest.raises(PlanError, match="kills=5: must be below messages"):
        make_plan("broker-crash", settings={"kills": "5", "messages": "5"})
