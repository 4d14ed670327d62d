"""Semaphores of a sweep whose processes are all killed at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rebalance_lab.world.process.semaphores import name_semaphores

PLACE = Path("/dev/shm")
LIMIT_S = 60

SWEEPS = """
import sys
from pathlib import Path
from rebalance_lab.trials import api
if __name__ == "__main__":
    plans = (api.make_plan("zombie", seed=seed) for seed in range(4000))
    for _ in api.sweep(plans, Path(sys.argv[1])):
        print("one", flush=True)
"""


def of(pid: int) -> list[Path]:
    return list(PLACE.glob(f"sem.rebalance-lab-{pid}-*"))


def test_semaphores_of_killed_processes_go_with_the_next_pool(tmp_path: Path) -> None:
    program = tmp_path / "sweeps.py"
    program.write_text(SWEEPS)
    sweep = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / "store")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert sweep.stdout is not None and sweep.stdout.readline() == "one\n"
    assert of(sweep.pid), "Python names them otherwise"
    name_semaphores()
    assert of(sweep.pid), "their process runs"
    os.killpg(sweep.pid, signal.SIGKILL)
    sweep.communicate(timeout=LIMIT_S)
    assert of(sweep.pid), "nothing was left that could remove them"
    name_semaphores()
    assert of(sweep.pid) == []


def test_those_of_others_stay() -> None:
    other = PLACE / f"sem.of-another-program-{os.getpid()}-{time.monotonic_ns()}"
    other.touch()
    try:
        name_semaphores()
        assert other.exists()
    finally:
        other.unlink()
