"""Live trials: members as OS processes, on a ZooKeeper server started for the trial.

The runner is one process with its own kernel. It starts a server and the members, follows what
they write (their event files, and the server's transaction log), plays the scenario, and seals
the history. All it started dies with it, also by kill -9: each child asks the kernel for that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rebalance_lab.history.events import Event, Kind, decode
from rebalance_lab.history.files import Trial, digest, merge, read_events, seal
from rebalance_lab.history.recorder import FileSink, RecorderFailed
from rebalance_lab.history.transactions import RegistryTracker
from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.lab import Lab, TrialError
from rebalance_lab.trials.members import member_spec
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.rest import RestTracker, TrackedSink
from rebalance_lab.trials.scenario import play
from rebalance_lab.trials.versions import versions
from rebalance_lab.wire.describe import describe
from rebalance_lab.world.live.embedded import EmbeddedZooKeeper
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.processes import (
    RunState,
    clock_of,
    die_with_parent,
    identity,
    measure_wall_offset,
    run_state,
)
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.ports import RecorderPort, ZooKeeper

#: How often the runner reads what members and server wrote.
FOLLOW_PERIOD_US = 20_000

#: SIGSTOP and SIGKILL take effect at once unless the machine is overloaded.
SIGNAL_LIMIT_US = 5_000_000

#: How often a process is looked at until a signal has taken effect.
SIGNAL_POLL_US = 1000

#: The runner's own session: the longest a server of this tick grants.
RUNNER_SESSION_TICKS = 20


class EventFile:
    """The growing end of one process's event file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def poll(self) -> list[Event]:
        """The events written since the last call; a line that is not complete yet waits."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        complete = data.rfind(b"\n") + 1
        self._offset += complete
        return [decode(line) for line in data[:complete].splitlines()]


class MemberProcess:
    """The faults' handle on a member's OS process (`trials.lab.ProcessHandle`)."""

    def __init__(self, actor: str, popen: subprocess.Popen[bytes], kernel: Kernel, stderr: Path) -> None:
        self.actor = actor
        self.popen = popen
        self.may_end = False
        self._kernel = kernel
        self._stderr = stderr

    async def pause(self) -> str:
        os.kill(self.popen.pid, signal.SIGSTOP)
        return await self._seen(RunState.STOPPED)

    async def resume(self) -> str:
        if run_state(self.popen.pid) is not RunState.STOPPED:
            raise TrialError(f"{self.actor} (pid {self.popen.pid}) did not stay stopped: somebody else woke it")
        os.kill(self.popen.pid, signal.SIGCONT)
        return await self._seen(RunState.ALIVE)

    async def kill(self) -> str:
        self.may_end = True
        self.popen.kill()
        await self._until(lambda: self.popen.poll() is not None, "did not die of SIGKILL")
        return f"waitpid({self.popen.pid}): ended by signal {-self.popen.returncode}"

    def ask_to_leave(self) -> None:
        self.may_end = True
        self.popen.terminate()

    def check(self) -> None:
        """Raise TrialError when the process ended and nobody asked it to, or ended badly."""
        code = self.popen.poll()
        if code is not None and (not self.may_end or code not in {0, -signal.SIGKILL}):
            tail = self._stderr.read_text(errors="replace")[-2000:]
            raise TrialError(f"{self.actor} (pid {self.popen.pid}) ended with {code}; {self._stderr} ends:\n{tail}")

    async def _seen(self, state: RunState) -> str:
        await self._until(lambda: run_state(self.popen.pid) is state, f"was not seen {state.value}")
        return f"/proc/{self.popen.pid}/stat: {state.value}"

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        give_up_us = self._kernel.now_us() + SIGNAL_LIMIT_US
        while not condition():
            if self._kernel.now_us() > give_up_us:
                raise TrialError(f"{self.actor} (pid {self.popen.pid}) {what} within {SIGNAL_LIMIT_US} µs")
            await self._kernel.sleep(SIGNAL_POLL_US)


class LiveStage:
    """Processes and a server for one trial (`trials.lab.Stage`)."""

    def __init__(self, plan: Plan, folder: Path, live: LiveKernel, server: EmbeddedZooKeeper) -> None:
        self.plan = plan
        self.folder = folder
        self.kernel = live.kernel
        self.tracker = RestTracker()
        self.changed = Flag("trial changed")
        self.boot_ids: set[str] = {clock_of(identity())}
        self.wall_offset_us = measure_wall_offset().offset_us
        self.processes: list[MemberProcess] = []
        self._connect = server.connect_string
        self._log = TransactionLog(server.data_dir)
        self._registry = RegistryTracker(wall_offset_us=self.wall_offset_us, describe=describe, plant=plan.plant)
        self._own_files = [FileSink(folder / "zookeeper.jsonl"), FileSink(folder / "runner.jsonl")]
        registry_sink, runner_sink = (TrackedSink(each, self.tracker, self.changed) for each in self._own_files)
        self._registry_sink = registry_sink
        self._files: list[EventFile] = []
        runner = live_environment("runner", live, runner_sink, plan.seed)
        self.recorder: RecorderPort = runner.recorder
        self.zookeeper: ZooKeeper = runner.zookeeper.open(self._connect, RUNNER_SESSION_TICKS * plan.number("tick_ms"))

    async def follow(self) -> None:
        """Read what members and server write, for as long as the trial runs."""
        while True:
            self.poll()
            for process in self.processes:
                process.check()
            await self.kernel.sleep(FOLLOW_PERIOD_US)

    def poll(self) -> None:
        """Read what is there now."""
        moved = False
        for file in self._files:
            for event in file.poll():
                if event.kind is Kind.HOST_STARTED:
                    self.boot_ids.add(clock_of(event.detail or {}))
                moved |= self.tracker.feed(event)
        for transaction in self._log.poll():
            for event in self._registry.feed(transaction):
                self._registry_sink.write(event)
        if moved:
            self.changed.raise_()

    def start_member(self, actor: str) -> MemberProcess:
        events = self.folder / f"{actor}.jsonl"
        spec_file = self.folder / f"{actor}.spec"
        spec = member_spec(self.plan, actor, connect=self._connect, events=str(events.resolve()))
        spec_file.write_bytes(msgspec.json.encode(spec))
        stderr = self.folder / f"{actor}.stderr"
        with stderr.open("wb") as errors:
            popen = subprocess.Popen(
                [sys.executable, "-m", "rebalance_lab.hosts.member", str(spec_file.resolve())],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                process_group=0,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 (one C call, looked up before the fork)
            )
        process = MemberProcess(actor, popen, self.kernel, stderr)
        self.processes.append(process)
        self._files.append(EventFile(events))
        return process

    def end_processes(self) -> None:
        """Kill what still runs (only after a failure) and reap everything."""
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.kill()
            process.popen.wait()

    def close(self) -> None:
        for file in self._own_files:
            file.close()


def perform(plan: Plan, folder: Path) -> Trial:
    """Run a live trial in `folder` (new, empty) and seal it.

    Raises TrialError, EmbeddedServerError; the folder then stays, unsealed, with all logs.
    """
    started_wall_ms = time.time_ns() // 1_000_000
    with EmbeddedZooKeeper.start(folder / "zookeeper", tick_ms=plan.number("tick_ms")) as server, LiveKernel() as live:
        stage = LiveStage(plan, folder, live, server)
        try:
            follower = live.kernel.host(stage.follow(), "follow")
            live.run(play(Lab(plan, stage)), f"scenario {plan.scenario}")
            _wait_for_exits(stage)
            follower.cancel("the trial has ended")
            stage.poll()
        except RecorderFailed as failed:
            raise TrialError(str(failed)) from failed
        finally:
            stage.end_processes()
            stage.close()
    drift_us = measure_wall_offset().offset_us - stage.wall_offset_us
    events = merge(event for file in sorted(folder.glob("*.jsonl")) for event in read_events(file))
    trial = Trial(
        id=folder.name,
        scenario=plan.scenario,
        world=plan.world,
        generation="zk",
        rules=plan.rules,
        seed=plan.seed,
        control=plan.control,
        parameters=plan.parameters,
        plant=plan.plant,
        boot_ids=tuple(sorted(stage.boot_ids)),
        wall_offset_us=stage.wall_offset_us,
        wall_drift_us=drift_us,
        versions=versions(),
        started_wall_ms=started_wall_ms,
        history_sha256=digest(events),
    )
    seal(folder, trial)
    return trial


def _wait_for_exits(stage: LiveStage) -> None:
    """Members that left have closed their sessions; their interpreters end a moment later."""
    for process in stage.processes:
        try:
            process.popen.wait(timeout=SIGNAL_LIMIT_US / 1e6)
        except subprocess.TimeoutExpired:
            raise TrialError(f"{process.actor} left the group and its process did not end") from None
        process.check()
