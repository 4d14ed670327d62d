"""A counterfeit for `agree`: a simulator that reconnects a second too early, as it once did with one server.

Trials of the simulator as it is stand for live ones. Against themselves, with other seeds, they agree.
"""

from __future__ import annotations

from typing import Any

import pytest
from thorough import only_thorough

from rebalance_lab.analysis.agreement.causes import Live
from rebalance_lab.analysis.agreement.measures import Measured
from rebalance_lab.analysis.agreement.verdicts import Agreement, Compared, compare
from rebalance_lab.cli.agree_samples import measure_simulated, with_seed
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.world.zk.server_list import ConnectWaits, ServerList

pytestmark = pytest.mark.slow

PLAN = make_plan("zombie")
LIVE, SIMULATED = 30, 200
ZOMBIES_WORK = "zombie_overlap.longest_us"


def sample(first_seed: int, number: int) -> list[Measured]:
    return [measure_simulated(with_seed(PLAN, seed)) for seed in range(first_seed, first_seed + number)]


@pytest.fixture(scope="module")
def as_live() -> list[Measured]:
    return sample(10_000, LIVE)


def rows(live: list[Measured], simulated: list[Measured]) -> dict[str, Compared]:
    return {row.measure.key: row for row in compare(live, simulated, Live.PROCESSES, PLAN.parameters)}


def test_an_early_reconnect_shows_in_the_zombies_work(as_live: list[Measured], monkeypatch: pytest.MonkeyPatch) -> None:
    made = ServerList.__init__

    def early(server_list: ServerList[Any], *given: Any) -> None:
        made(server_list, *given[:2], ConnectWaits(round_us=0))  # type: ignore[call-arg]

    monkeypatch.setattr(ServerList, "__init__", early)
    found = rows(as_live, sample(1, SIMULATED))
    work = found[ZOMBIES_WORK]
    assert work.verdict is Agreement.DIFFERS
    assert work.effect is not None
    assert work.effect.median == pytest.approx(1_000_000, abs=200_000)
    assert found["zombie_overlap.longest_belief_us"].verdict is Agreement.DIFFERS, "its belief lasts as long"
    assert found["session.pause"].verdict is not Agreement.DIFFERS, "the session ends at the server"


@only_thorough
def test_the_simulator_agrees_with_itself(as_live: list[Measured]) -> None:
    found = rows(as_live, sample(1, SIMULATED))
    assert found[ZOMBIES_WORK].verdict in {Agreement.AGREES, Agreement.EXPLAINED}
    assert Agreement.DIFFERS not in {row.verdict for row in found.values()}
