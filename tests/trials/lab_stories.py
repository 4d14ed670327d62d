"""Short stories played in a simulated lab, without a scenario of their own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import merge
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import SimulatedStage

Script = Callable[[GroupLab], Coroutine[Any, Any, None]]


def played(script: Script, seed: int = 1, rules: str = "described", **settings: str) -> tuple[Event, ...]:
    """The history of a script, on the parameters of `leave`."""
    plan: Plan = make_plan("leave", seed=seed, rules=rules, settings=settings)
    simulation = Simulation(seed)
    try:
        stage = SimulatedStage(plan, simulation)
        simulation.run(script(GroupLab(stage)), "story")
        return merge(stage.events)
    finally:
        simulation.close()


def of_kind(events: tuple[Event, ...], kind: Kind) -> list[Event]:
    return [event for event in events if event.kind is kind]
