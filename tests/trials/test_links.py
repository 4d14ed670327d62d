"""Links between nodes are cut and slowed, in every world, and nodes go on over new connections."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_talkers
from toy_talkers import HEARD

from rebalance_lab.checks.faults import Fault, faults
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, digest, load
from rebalance_lab.history.views import events_of
from rebalance_lab.report.trial_page import render_trial
from rebalance_lab.trials import api, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.world.simulated import network

#: The longest that a simulated message takes.
LATENCY_US = 2_000


@pytest.fixture(autouse=True)
def _talkers(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.scenario_names()  # the lab's own are there before ours
    monkeypatch.setattr(scenario, "_SCENARIOS", dict(scenario._SCENARIOS))
    scenario.register(toy_talkers.SCENARIO)
    monkeypatch.setenv("PYTHONPATH", str(Path(toy_talkers.__file__).parent))  # a node's process imports its role


def in_force(history: History, fault: Fault) -> tuple[int, int]:
    """From when until when a link was as the fault had it, and what was under way before had arrived."""
    assert fault.ended is not None
    began_us, ended_us = fault.began.at_us, fault.ended.at_us
    if history.trial.world == "simulated":
        return began_us + LATENCY_US, ended_us
    told_us = sorted(event.at_us for event in events_of(history, Kind.LINK_SET) if began_us < event.at_us < ended_us)
    assert len(told_us) == 4, "both processes, twice"
    return told_us[1], told_us[2]


def heard_during(history: History, fault: Fault) -> list[int]:
    """How long each reply took that was asked for and came while the fault was in force, in µs."""
    from_us, to_us = in_force(history, fault)
    found = [(event.at_us, event.of("after_us")) for event in events_of(history, HEARD)]
    return [
        took_us for at_us, took_us in found if isinstance(took_us, int) and from_us <= at_us - took_us <= at_us < to_us
    ]


def judge(history: History, unit: str) -> None:
    """`unit`: of the proofs."""
    each = [fault for fault in faults(history) if str(fault.began.of("fault")) in ("link-cut", "slow-link")]
    both, to_client, slow, again = each
    for fault in each:
        assert fault.bit is not None, fault.began
        assert unit in str(fault.bit.of("proof"))
    for cut in (both, to_client, again):
        assert heard_during(history, cut) == []
    assert min(heard_during(history, slow)) >= 99_000
    heard = list(events_of(history, HEARD))
    assert heard[-1].at_us > again.ended.at_us
    assert len({event.of("number") for event in heard}) == 2, "cuts end no connection, and the kill one"
    assert len(list(events_of(history, Kind.LISTENING))) == 2


@pytest.mark.parametrize("seed", range(5))
def test_simulated(seed: int) -> None:
    judge(simulate(api.make_plan("talkers", seed=seed))[0], "messages")


def test_the_history_of_a_seed_is_the_same_through_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = api.make_plan("talkers", seed=3)
    objects, _ = simulate(plan)
    monkeypatch.setattr(network, "_BYTES_EVERY", 1)
    assert network.carries_bytes(3)
    through_bytes, _ = simulate(plan)
    assert digest(through_bytes.events) == digest(objects.events)


def test_a_report_draws_nodes_that_are_no_members(tmp_path: Path) -> None:
    history, _ = simulate(api.make_plan("talkers", seed=3))
    page = render_trial(history, tmp_path)
    assert "c is cut off from s for" in page
    assert "s is cut off from c for" in page
    assert "c reaches s slowly for" in page
    assert "between c and s: messages held back: 1" in page


@pytest.mark.slow
def test_processes(tmp_path: Path) -> None:
    result = api.run(api.make_plan("talkers", world="processes", seed=1), tmp_path)
    judge(load(result.folder), "bytes")
