"""isr-election: the order of the ISR and that of the assignment, by failure and by controlled shutdown (E5b)."""

from __future__ import annotations

import pytest

from controller.leader_election import Selection
from rebalance_lab.checks import Outcome, judge
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

SHUTS_DOWN = {"leaves": "shuts-down"}


def play(**settings: str) -> History:
    return simulate(make_plan("isr-election", settings=settings))[0]


@pytest.mark.parametrize(
    ("settings", "isr_order", "assignment_order"),
    [
        ({}, Outcome.VIOLATED, Outcome.CLEAN),
        ({"selection": Selection.V0_8_0}, Outcome.CLEAN, Outcome.VIOLATED),
        ({"selection": Selection.V0_8_2}, Outcome.VIOLATED, Outcome.CLEAN),
        ({**SHUTS_DOWN, "selection": Selection.V0_8_0}, Outcome.CLEAN, Outcome.VIOLATED),
        ({**SHUTS_DOWN, "selection": Selection.V0_8_2}, Outcome.CLEAN, Outcome.VIOLATED),
        ({**SHUTS_DOWN, "selection": Selection.V1_1}, Outcome.VIOLATED, Outcome.CLEAN),
        (SHUTS_DOWN, Outcome.VIOLATED, Outcome.CLEAN),
    ],
    ids=[
        "dies",
        "dies in 0.8.0",
        "dies in 0.8.2",
        "shuts down in 0.8.0",
        "shuts down in 0.8.2",
        "shuts down in 1.1",
        "shuts down in 2.1",
    ],
)
def test_only_0_8_0_and_a_controlled_shutdown_of_0_8_2_follow_the_isr(
    settings: dict[str, str], isr_order: Outcome, assignment_order: Outcome
) -> None:
    found = judge(play(**settings))
    assert (found["isr_order"].outcome, found["assignment_order"].outcome) == (isr_order, assignment_order)
    assert found["lost_write"].outcome is Outcome.CLEAN


def test_a_broker_that_has_left_lives_again() -> None:
    history = play(**SHUTS_DOWN)
    proofs = [(each.of("target"), each.of("fault")) for each in events_of(history, Kind.FAULT_BIT)]
    assert proofs == [("b2", "leave"), ("b2", "restart"), ("b1", "leave"), ("b1", "restart")]
    assert not [each for each in events_of(history, Kind.FAULT_BIT) if each.of("fault") == "kill"]


def test_what_docker_cannot_do_is_refused() -> None:
    with pytest.raises(PlanError, match="leaves=shuts-down: not in the world containers"):
        make_plan("isr-election", world="containers", settings=SHUTS_DOWN)
