"""Live trials: members as OS processes (or in containers: see `trials.stages.containers.stage`), on ZooKeeper servers
started for the trial.

The runner is one process with its own kernel. It starts servers and members, reads what they write (the
members' event files and the servers' transaction logs), plays the scenario, and seals the history.
Everything it started ends with it, even if it is killed with kill -9: each child asks the kernel for
that.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from rebalance_lab.history.files import Trial, digest, merge, read_events, seal
from rebalance_lab.history.recorder import RecorderFailed
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.record import trial_record
from rebalance_lab.trials.scenario import play, scenario
from rebalance_lab.trials.stage import LAGGARD, GaveUp, TrialError
from rebalance_lab.trials.stages.processes.servers import EnsembleServers, foreign_stage
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.kafka.prepared import prepare
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.foreign import ForeignZooKeeper
from rebalance_lab.world.process.clocks import measure_wall_offset


def perform(plan: Plan, folder: Path) -> Trial:
    """Run a live trial in `folder` (new, empty) and seal it, even if the runner gave up (`history.views.gave_up`).

    Raises TrialError, EmbeddedServerError; the folder then has all logs, unsealed.
    """
    real = scenario(plan.scenario).subject.real
    if plan.has_real_nodes and real is not None:
        prepare(real.roles)
    started_wall_ms = time.time_ns() // 1_000_000
    with _set_up(plan, folder) as (live, stage):
        try:
            world_versions = stage.versions()
            _play(live, stage)
            stage.poll()
        except RecorderFailed as failed:
            raise TrialError(str(failed)) from failed
        finally:
            stage.close()
    drift_us = measure_wall_offset().offset_us - stage.wall_offset_us
    events = merge(event for file in sorted(folder.glob("*.jsonl")) for event in read_events(file))
    trial = trial_record(
        plan,
        folder.name,
        digest(events),
        boot_ids=tuple(sorted(stage.boot_ids)),
        world_versions=world_versions,
        wall_offset_us=stage.wall_offset_us,
        wall_drift_us=drift_us,
        started_wall_ms=started_wall_ms,
    )
    seal(folder, trial)
    return trial


def _play(live: LiveKernel, stage: LiveStage) -> None:
    """Play the scenario to its end, or until the runner gives up. No member's process runs when it returns."""
    try:
        follower = live.kernel.start_root(stage.follow(), "follow")
        with suppress(GaveUp):
            live.run(play(stage), f"scenario {stage.plan.scenario}")
            stage.wait_for_processes()
        follower.cancel("the trial has ended")
    finally:
        stage.end_processes()


@contextmanager
def _set_up(plan: Plan, folder: Path) -> Iterator[tuple[LiveKernel, LiveStage]]:
    """Start the servers of the plan's world, and a stage on them."""
    if plan.world == "containers":
        with _containers().set_up(plan, folder) as found:
            yield found
        return
    foreign = ForeignZooKeeper.named(folder.name)
    if foreign is not None and plan.number("servers") == 1:  # several are there to be harmed
        with LiveKernel() as live, foreign_stage(plan, folder, live, foreign) as stage:
            yield live, stage
        return
    nodes, tick_ms = plan.number("servers"), plan.number("tick_ms")
    laggards = (LAGGARD,) if nodes > 1 else ()
    with (
        EmbeddedEnsemble.start(folder / "zookeeper", nodes, tick_ms, laggards) as ensemble,
        LiveKernel() as live,
    ):
        yield live, LiveStage(plan, folder, live, ensemble, EnsembleServers(ensemble))


def _containers() -> ModuleType:
    """The world of containers, which needs more packages than the others."""
    try:
        return importlib.import_module("rebalance_lab.trials.stages.containers.stage")
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("rebalance_lab"):
            raise
        raise TrialError(
            f"the world of containers needs {missing.name}: pip install 'rebalance-lab[containers]'"
        ) from missing
