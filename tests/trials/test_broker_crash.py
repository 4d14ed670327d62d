"""The broker's crash: what survives it, and that the trial is the one that was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from rebalance_lab.broker.log.names import LOG
from rebalance_lab.checks import Outcome, judge
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.kernel import Future
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedFile

POWER = {"power_loss": "true"}


def power_losses(history: History) -> list[Event]:
    """The proofs of those that took effect."""
    return [event for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == "power-loss"]


def run(seed: int, **settings: str) -> History:
    history, _ = simulate(make_plan("broker-crash", seed=seed, settings=settings))
    return history


@pytest.mark.parametrize("seed", range(1, 6))
def test_with_each_record_synced_a_loss_of_power_takes_none(seed: int) -> None:
    history = run(seed, **POWER, flush_messages="1")
    assert {finding.outcome for finding in judge(history).values()} == {Outcome.CLEAN}
    assert len(power_losses(history)) == 2


def test_without_a_sync_a_loss_of_power_takes_acknowledged_records() -> None:
    finding = judge(run(1, **POWER))["lost_write"]
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] > 0


def test_a_disk_that_spares_logs_leaves_the_trial_unknown() -> None:
    """The broker syncs no log, and the disk loses bytes of other files only: none of that proves a loss of power."""
    sync, lose_power = SimulatedFile.sync, SimulatedDisk.lose_power

    def never(self: SimulatedFile) -> Future[None]:
        return self.truncate(self.size) if self.path.endswith(LOG) else sync(self)  # takes its time, changes nothing

    def spares(self: SimulatedDisk, *, everything: bool = False) -> PowerLoss:
        for path, file in self.files().items():
            if path.endswith(LOG):
                file.sync()
        return lose_power(self, everything=everything)

    with patch.object(SimulatedFile, "sync", never), patch.object(SimulatedDisk, "lose_power", spares):
        history = run(1, **POWER, flush_messages="1")
    assert power_losses(history) == []
    finding = judge(history)["lost_write"]
    assert (finding.outcome, finding.measures["count"]) == (Outcome.UNKNOWN, 0)
    assert "power-loss of b1 (runner/" in finding.why


def test_what_is_lost_without_a_sync_is_of_the_log() -> None:
    lost = [bit.of("bytes_lost") for seed in range(1, 4) for bit in power_losses(run(seed, **POWER))]
    own = [each for each in lost if any(path.startswith("t1-0/") and path.endswith(LOG) for path in each)]  # type: ignore[attr-defined]
    assert len(lost) == 6
    assert len(own) > 3, "a disk keeps all of a file in one draw of four"


def test_an_idempotent_producer_has_each_number_once() -> None:
    """Some attempt was written and not answered, so without its sequence it is there twice."""
    repeats = {
        idempotent: sum(
            judge(run(seed, **POWER, flush_messages="1", idempotent=idempotent))["duplicate"].measures["repeats"]
            for seed in range(1, 6)
        )
        for idempotent in ("false", "true")
    }
    assert repeats["false"] > 0
    assert repeats["true"] == 0


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
