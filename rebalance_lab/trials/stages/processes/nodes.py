"""Nodes' OS processes, and the files that they write, as the runner sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from rebalance_lab.history.events import Event, decode
from rebalance_lab.kernel import Kernel
from rebalance_lab.roles.spec import Command, Expire, Leave, NodeSpec, Start
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.process.growing_file import GrowingFile
from rebalance_lab.world.process.os_process import OsProcess
from rebalance_lab.world.process.states import RunState, run_state

#: The longest wait for a signal: SIGSTOP and SIGKILL take effect at once unless the machine is overloaded.
SIGNAL_LIMIT_US = 5_000_000

#: The longest wait for the end of a process whose members have left: seconds on a busy machine.
END_LIMIT_S = 60.0

#: The time between two looks at a process until a signal has taken effect.
SIGNAL_POLL_US = 1000


class EventSource(Protocol):
    """The events of one node, as they are written."""

    def poll(self) -> list[Event]:
        """The events since the last call."""
        ...

    def close(self) -> None: ...


class EventFile:
    """The growing end of one node's event file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = GrowingFile(path)

    def poll(self) -> list[Event]:
        """The events written since the last call. A line that is not complete yet is left for the next call."""
        return [decode(line) for line in self._file.lines()]

    def close(self) -> None:
        """Does nothing: no file is kept open."""


class Host(Protocol):
    """An OS process with nodes in it: one of ours (`HostProcess`), or another program."""

    name: str
    nodes: list[str]
    may_end: bool

    @property
    def popen(self) -> subprocess.Popen[bytes]: ...
    @property
    def pid(self) -> int: ...
    def start(self, spec: NodeSpec) -> None: ...
    def tell(self, command: Command) -> None: ...
    def start_again(self) -> None:
        """Start a process that was killed, with the nodes that it began with. Raises TrialError."""
        ...

    def check(self) -> None: ...
    def wait(self) -> None: ...
    def end(self) -> None: ...


class HostProcess(OsProcess):
    """One OS process with the nodes in it (`roles.main`). Its output, also that of later lives, goes to one file."""

    def __init__(self, name: str, specs: list[NodeSpec], folder: Path) -> None:
        super().__init__(name, folder / f"{name}.stderr")
        self.nodes = [spec.actor for spec in specs]
        self.may_end = False
        self._spec_file = folder / f"{name}.spec"
        self._spec_file.write_bytes(msgspec.json.encode(specs))
        self.log_file.write_bytes(b"")
        self.launch()

    def launch(self) -> None:
        """Start it, also again after its end, with the nodes that it began with."""
        command = [sys.executable, "-m", "rebalance_lab.roles.main", str(self._spec_file.resolve())]
        self._spawn(command, self.log_file, append=True, stdin=subprocess.PIPE)

    def start_again(self) -> None:
        """Start it after it was killed, with the nodes that it began with. Raises TrialError."""
        if not self.ended:
            raise TrialError(f"process {self.describe()} cannot be started again: it runs; kill it first")
        self._close_stdin()
        self.may_end = False
        self.launch()

    def start(self, spec: NodeSpec) -> None:
        """Start a further node in it."""
        self.nodes.append(spec.actor)
        self.tell(Start(msgspec.Raw(msgspec.json.encode(spec))))

    def tell(self, command: Command) -> None:
        """Write a command to its standard input. Raises TrialError if it has ended."""
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(msgspec.json.encode(command) + b"\n")
            self.popen.stdin.flush()
        except OSError as error:
            raise TrialError(f"process {self.describe()} does not accept commands: {error}") from error

    def check(self) -> None:
        """Raise TrialError if the process ended without being asked to, or ended badly."""
        code = self.popen.poll()
        if code is not None and (not self.may_end or code not in {0, -signal.SIGKILL}):
            raise TrialError(f"{self.describe()} ended with {code}{self.log_tail()}")

    def wait(self) -> None:
        """Wait until the process ends, a moment after its nodes have left and closed their sessions."""
        try:
            self.popen.wait(timeout=END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise TrialError(f"{', '.join(self.nodes)} left, and process {self.name} did not end") from None
        self.check()

    def end(self) -> None:
        """Kill it if it still runs (only after a failure), and reap it."""
        self.kill()
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self.popen.stdin is not None:
            with suppress(OSError):  # what it did not take any more would be written again
                self.popen.stdin.close()


class LiveNode:
    """The faults' handle on a live node (`trials.stage.ProcessHandle`). `proxies`: those that its connections go
    through, one for each server in its connect string; empty if it is not proxied. `lose_power`: cuts its files back
    (`world.live.synced_lengths`)."""

    def __init__(
        self, actor: str, host: Host, kernel: Kernel, proxies: list[TcpProxy], lose_power: Callable[..., PowerLoss]
    ) -> None:
        self.actor = actor
        self.host = host
        self._kernel = kernel
        self._proxies = proxies
        self._lose_power = lose_power

    # -- its process ------------------------------------------------------------------------

    async def pause(self) -> str:
        os.kill(self._own_process().pid, signal.SIGSTOP)
        return await self._seen(RunState.STOPPED)

    async def resume(self) -> str:
        process = self._own_process()
        if run_state(process.pid) is not RunState.STOPPED:
            raise TrialError(f"{self.actor} (pid {process.pid}) did not stay stopped: another process resumed it")
        os.kill(process.pid, signal.SIGCONT)
        return await self._seen(RunState.ALIVE)

    async def kill(self) -> str:
        process = self._own_process()
        process.may_end = True
        process.popen.kill()
        await self._until(lambda: process.popen.poll() is not None, "did not die of SIGKILL")
        return f"waitpid({process.pid}): ended by signal {-process.popen.returncode}"

    async def start_again(self) -> str:
        process = self._own_process()
        if process.may_end:  # it was killed, or asked to leave
            await self._until(lambda: process.popen.poll() is not None, "did not end")
        process.start_again()
        return await self._seen(RunState.ALIVE)

    async def lose_power(self, *, everything: bool = False) -> PowerLoss:
        process = self._own_process()
        if process.popen.poll() is None:
            raise TrialError(f"{self.actor} (pid {process.pid}) cannot lose its power: it runs; kill it first")
        return self._lose_power(everything=everything)

    def ask_to_leave(self) -> None:
        self.host.may_end = True
        if len(self.host.nodes) > 1:
            self.host.tell(Leave(self.actor))
        else:
            self.host.popen.terminate()

    async def expire(self) -> str:
        self.host.tell(Expire(self.actor))
        return f"process {self.host.pid} was told to close the session of {self.actor} on a second connection"

    def _own_process(self) -> Host:
        if len(self.host.nodes) > 1:
            others = ", ".join(each for each in self.host.nodes if each != self.actor)
            raise TrialError(f"{self.actor} shares process {self.host.pid} with {others}: give it one of its own")
        return self.host

    async def _seen(self, state: RunState) -> str:
        pid = self.host.pid
        await self._until(lambda: run_state(pid) is state, f"was not seen {state.value}")
        return f"/proc/{pid}/stat: {state.value}"

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        give_up_us = self._kernel.now_us() + SIGNAL_LIMIT_US
        while not condition():
            if self._kernel.now_us() > give_up_us:
                raise TrialError(f"{self.actor} (pid {self.host.pid}) {what} within {SIGNAL_LIMIT_US} µs")
            await self._kernel.sleep(SIGNAL_POLL_US)

    # -- its connections --------------------------------------------------------------------

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        for proxy in self._ways():
            proxy.silence(to_server=to_server, to_client=to_client)
        ways = [name for name, way in (("to the server", to_server), ("to the client", to_client)) if way]
        return f"proxy of {self.actor} holds back what goes {' and '.join(ways)}"

    async def heal(self) -> str | None:
        stuck = unanswered = 0
        for proxy in self._ways():
            proxy.heal()
            counters = proxy.counters
            stuck += counters.stuck_to_server + counters.stuck_to_client
            unanswered += counters.unanswered
        proof = f"{stuck} bytes were stuck, {unanswered} connections were not answered"
        return proof if stuck or unanswered else None

    async def lose_next_reply(self, created: str = "") -> str:
        lost = [proxy.lose_next_reply(created) for proxy in self._ways()]
        index = await self._kernel.first(*lost)
        for proxy in self._ways():
            proxy.keep_replies()
        return f"proxy of {self.actor}: reply to request {lost[index].result()} swallowed, connection broken"

    def _ways(self) -> list[TcpProxy]:
        if not self._proxies:
            raise TrialError(f"{self.actor} is not proxied: start it with proxied=True among its options")
        return self._proxies
