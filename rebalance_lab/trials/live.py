"""Live trials: members as OS processes, on ZooKeeper servers started for the trial.

The runner is one process with its own kernel. It starts servers and members, follows what
they write (the members' event files, and the servers' transaction logs), plays the scenario, and
seals the history. All it started dies with it, also by kill -9: each child asks the kernel for that.
"""

from __future__ import annotations

import time
from pathlib import Path

from rebalance_lab.history.files import Trial, digest, merge, read_events, seal
from rebalance_lab.history.recorder import RecorderFailed
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.live_stage import LiveStage
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.record import trial_record
from rebalance_lab.trials.scenario import play
from rebalance_lab.trials.stage import LAGGARD, TrialError
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.processes import measure_wall_offset


def perform(plan: Plan, folder: Path) -> Trial:
    """Run a live trial in `folder` (new, empty) and seal it.

    Raises TrialError, EmbeddedServerError; the folder then stays, unsealed, with all logs.
    """
    started_wall_ms = time.time_ns() // 1_000_000
    nodes, tick_ms = plan.number("servers"), plan.number("tick_ms")
    laggards = (LAGGARD,) if nodes > 1 else ()
    with (
        EmbeddedEnsemble.start(folder / "zookeeper", nodes, tick_ms, laggards) as ensemble,
        LiveKernel() as live,
    ):
        stage = LiveStage(plan, folder, live, ensemble)
        try:
            follower = live.kernel.host(stage.follow(), "follow")
            live.run(play(Lab(plan, stage)), f"scenario {plan.scenario}")
            for process in stage.processes.values():
                process.wait()
            follower.cancel("the trial has ended")
            stage.poll()
        except RecorderFailed as failed:
            raise TrialError(str(failed)) from failed
        finally:
            stage.end_processes()
            stage.close()
    drift_us = measure_wall_offset().offset_us - stage.wall_offset_us
    events = merge(event for file in sorted(folder.glob("*.jsonl")) for event in read_events(file))
    trial = trial_record(
        plan,
        folder.name,
        digest(events),
        boot_ids=tuple(sorted(stage.boot_ids)),
        wall_offset_us=stage.wall_offset_us,
        wall_drift_us=drift_us,
        started_wall_ms=started_wall_ms,
    )
    seal(folder, trial)
    return trial
