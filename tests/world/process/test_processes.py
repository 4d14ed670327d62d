"""Children that die with their parent, process states, clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rebalance_lab.world.process.clocks import boot_id, measure_wall_offset
from rebalance_lab.world.process.states import ProcessStateTimeout, RunState, die_with_parent, run_state, wait_for_state

BOUND_S = 10.0

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]

PARENT = f"""
import subprocess, sys
from rebalance_lab.world.process.states import die_with_parent
child = subprocess.Popen({SLEEPER!r}, preexec_fn=die_with_parent())
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_a_child_dies_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        assert run_state(child_pid) is RunState.ALIVE
        parent.kill()
    wait_for_state(child_pid, RunState.GONE, BOUND_S)


BOUND_CHILD = [
    sys.executable,
    "-c",
    "import os, time; from rebalance_lab.world.process.states import die_with_parent;"
    " die_with_parent(os.getppid())(); print(os.getpid(), flush=True); time.sleep(60)",
]


def test_a_child_can_bind_itself_to_its_parent() -> None:
    program = f"import subprocess, sys; subprocess.Popen({BOUND_CHILD!r}); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        assert run_state(child_pid) is RunState.ALIVE
        parent.kill()
    wait_for_state(child_pid, RunState.GONE, BOUND_S)


def test_a_child_whose_parent_died_before_it_was_bound_ends() -> None:
    program = "from rebalance_lab.world.process.states import die_with_parent; die_with_parent(1)(); print('went on')"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (127, "")


def test_a_child_without_the_setting_outlives_its_parent() -> None:
    """The control: it is the setting that ends the child above, nothing else."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.replace("preexec_fn=die_with_parent()", "")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child_pid = int(parent.stdout.readline())
        parent.kill()
    try:
        with pytest.raises(ProcessStateTimeout, match="is alive, not gone"):
            wait_for_state(child_pid, RunState.GONE, 0.1)
    finally:
        os.kill(child_pid, signal.SIGKILL)


def test_stop_and_continue_are_seen() -> None:
    with subprocess.Popen(SLEEPER, preexec_fn=die_with_parent()) as process:  # noqa: PLW1509 (one thread here)
        os.kill(process.pid, signal.SIGSTOP)
        wait_for_state(process.pid, RunState.STOPPED, BOUND_S)
        os.kill(process.pid, signal.SIGCONT)
        wait_for_state(process.pid, RunState.ALIVE, BOUND_S)
        process.kill()
    assert run_state(process.pid) is RunState.GONE


def test_an_unwaited_child_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        wait_for_state(process.pid, RunState.GONE, BOUND_S)
        assert os.path.exists(f"/proc/{process.pid}")  # a zombie: not waited for yet
    finally:
        process.wait()


def test_the_wall_offset_maps_one_clock_to_the_other() -> None:
    offset = measure_wall_offset()
    assert 0 < offset.error_us < 1000
    before_us = time.monotonic_ns() // 1000
    wall_us = time.time_ns() // 1000
    after_us = time.monotonic_ns() // 1000
    slack_us = offset.error_us + 2000
    assert before_us - slack_us <= wall_us - offset.offset_us <= after_us + slack_us


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="0 samples"):
        measure_wall_offset(samples=0)


def test_the_boot_id_stays() -> None:
    assert len(boot_id()) == 36
    assert boot_id() == boot_id()
