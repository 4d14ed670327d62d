"""Ensembles of other sizes, those that cannot start, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.process.states import RunState, run_state, wait_for_state

BOUND_S = 10.0


def test_one_node_has_the_same_interface(tmp_path: Path, bench: Any) -> None:
    with EmbeddedEnsemble.start(tmp_path, nodes=1, tick_ms=300) as single:

        async def story() -> None:
            assert await single.leader() == "z1"
            assert "tickTime=300" in single.servers["z1"].command("conf").splitlines()
            session = await bench.connected(single.connect_string)
            await session.create("/a", b"")
            single.kill("z1")
            single.start_node("z1")
            await single.serving("z1")
            assert (await bench.connected(single.connect_string)).session_id != 0

        bench.run(story)
        with pytest.raises(EmbeddedServerError, match="z1 cannot lag"):
            single.lag("z1", 100)
    assert single.servers["z1"].state is RunState.GONE
    single.stop()  # again is harmless


@pytest.mark.parametrize(
    ("nodes", "lag_nodes", "complaint"),
    [
        (0, (), "an ensemble of 0 nodes"),
        (3, ("z4",), r"lag_nodes \('z4',\) of z1, z2, z3"),
        (1, ("z1",), "name followers"),
    ],
)
def test_ensembles_that_cannot_be(tmp_path: Path, nodes: int, lag_nodes: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        EmbeddedEnsemble.start(tmp_path, nodes, lag_nodes=lag_nodes)


def test_a_node_that_does_not_start_is_named_with_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "z2" / "version-2"
    broken.mkdir(parents=True)
    (broken / "currentEpoch").write_text("not a number")
    with pytest.raises(EmbeddedServerError, match=r"z2 \(.*\) has ended; the last lines of .*zookeeper-0\.log"):
        EmbeddedEnsemble.start(tmp_path)
    commands = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"])]
    assert not any(str(tmp_path) in argument for command in commands for argument in command)


def test_the_nodes_die_when_their_starter_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rebalance_lab.world.live.ensemble import EmbeddedEnsemble\n"
        f"it = EmbeddedEnsemble.start(Path({str(tmp_path)!r}), 2); print(*it.pids, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert [run_state(pid) for pid in pids] == [RunState.ALIVE] * 2
        os.kill(starter.pid, signal.SIGKILL)
    for pid in pids:
        wait_for_state(pid, RunState.GONE, BOUND_S)
