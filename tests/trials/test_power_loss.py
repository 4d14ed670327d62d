"""Storage outlives the processes of its actor, and a loss of power takes what was not synced, in every world."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_notebook
from lab_stories import played
from toy_notebook import FOUND, HALF_BYTES

from rebalance_lab.checks.faults import faults
from rebalance_lab.faults.power_loss import lose_power
from rebalance_lab.history.files import History, load
from rebalance_lab.history.views import events_of
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials import api, scenario
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.simulated.stage import simulate


@pytest.fixture(autouse=True)
def _notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.scenario_names()  # the lab's own are there before ours
    monkeypatch.setattr(scenario, "_SCENARIOS", dict(scenario._SCENARIOS))
    scenario.register(toy_notebook.SCENARIO)
    monkeypatch.setenv("PYTHONPATH", str(Path(toy_notebook.__file__).parent))  # a node's process imports its role


def lost_by_first(history: History) -> int:
    """How many bytes the node that lost its power lost. The rest is checked."""
    found = {
        actor: [event.of("size") for event in events_of(history, FOUND) if event.actor == actor]
        for actor in ("n1", "n2")
    }
    assert found["n2"] == [0, 2 * HALF_BYTES], "a kill alone loses nothing"
    first, second = found["n1"]
    assert first == 0
    assert isinstance(second, int)
    assert HALF_BYTES <= second <= 2 * HALF_BYTES, "what was synced stays"
    lost = 2 * HALF_BYTES - second
    (fault,) = [each for each in faults(history) if each.began.of("fault") == "power-loss"]
    assert (fault.bit is not None) == (lost > 0)
    if fault.bit is not None:
        assert fault.bit.of("bytes_lost") == {"notes/log": lost}
        assert fault.bit.of("proof") == f"bytes lost of notes/log: {lost}"
    return lost


def test_simulated() -> None:
    lost = [lost_by_first(simulate(api.make_plan("notebooks", seed=seed))[0]) for seed in range(20)]
    assert {0, HALF_BYTES} < set(lost)


def test_processes(tmp_path: Path) -> None:
    result = api.run(api.make_plan("notebooks", world="processes", seed=1), tmp_path)
    lost = lost_by_first(load(result.folder))
    files = result.folder / "n1.files" / "notes" / "log"
    assert files.stat().st_size == 4 * HALF_BYTES - lost


def test_a_node_that_runs_cannot_lose_its_power() -> None:
    async def story(lab: GroupLab) -> None:
        await lab.prepare()
        member = await lab.start_member()
        with pytest.raises(TrialError, match="m1 cannot lose its power: it is running; kill it first"):
            await lose_power(lab, member)
        await lab.close()

    played(story)
