"""A live stage and the processes that end."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.rest import RestTracker
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import RUNNER_SESSION_TICKS
from rebalance_lab.trials.stages.processes.nodes import NodeProcess
from rebalance_lab.trials.stages.processes.servers import EnsembleServers
from rebalance_lab.trials.stages.processes.stage import LiveStage
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble


def stage_of(members: list[str], told: dict[str, Kind]) -> tuple[LiveStage, SimpleNamespace]:
    """A stage with one process, of which it knows what its members `told`; and the process, which
    notes when it is waited for whether it might end by itself."""
    stage = LiveStage.__new__(LiveStage)  # no servers, no sessions: only what is needed here
    stage.tracker = RestTracker()
    for actor, kind in told.items():
        stage.tracker.feed(Event(actor=actor, n=0, at_us=0, layer=LAYER_OF[kind], kind=kind))
    process = SimpleNamespace(nodes=members, may_end=False, seen=None)
    process.wait = lambda: setattr(process, "seen", process.may_end)
    stage.processes = {"p": cast("NodeProcess", process)}
    return stage, process


@pytest.mark.parametrize(
    ("told", "may_end"),
    [
        ({"m1": Kind.MEMBER_REFUSED, "m2": Kind.MEMBER_REFUSED}, True),
        ({"m1": Kind.MEMBER_REFUSED, "m2": Kind.MEMBER_STARTED}, False),
        ({"m1": Kind.MEMBER_REFUSED}, False),
    ],
)
def test_a_process_of_refused_members_may_end_after_the_script(told: dict[str, Kind], *, may_end: bool) -> None:
    """On a busy machine its interpreter still ends when the script is over, and nobody asked it to."""
    stage, process = stage_of(["m1", "m2"], told)
    stage.wait_for_processes()
    assert process.seen is may_end


def test_the_runners_session_outlives_several_starts_that_block_it(tmp_path: Path) -> None:
    """Containers that start on a busy machine block it for longer than its timeout together, though each does not."""
    tick_ms = 200
    blocked_s = 0.6 * RUNNER_SESSION_TICKS * tick_ms / 1000
    plan = make_plan("isr-election", world="processes", settings={"tick_ms": str(tick_ms), "session_timeout_ms": "600"})

    async def script(stage: LiveStage) -> None:
        await Lab(stage).connected()
        for _ in range(2):
            time.sleep(blocked_s)  # noqa: ASYNC251  # as a start does
            await stage.started_one_of_several()
        await stage.zookeeper.create("/after", b"")
        assert (await stage.zookeeper.get("/after")).value.data == b""

    with EmbeddedEnsemble.start(tmp_path / "zookeeper", 1, tick_ms, ()) as ensemble, LiveKernel() as live:
        stage = LiveStage(plan, tmp_path, live, ensemble, EnsembleServers(ensemble))
        live.run(script(stage), "starts that block")
        stage.close()
