"""Nodes' OS processes, and the files that they write, as the runner sees them."""

from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

import msgspec

from rebalance_lab.history.events import Event, decode
from rebalance_lab.kernel import Kernel
from rebalance_lab.roles.spec import Command, Expire, Leave, NodeSpec, Start
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.process.growing_file import GrowingFile
from rebalance_lab.world.process.managed import CommandedProcess, ManagedProcess
from rebalance_lab.world.process.os_process import OsProcess
from rebalance_lab.world.process.states import RunState

#: The longest wait for the end of a process whose members have left: seconds on a busy machine.
END_LIMIT_S = 60.0

#: The same within a script, for one that is started again.
LEAVE_LIMIT_US = 5_000_000

#: The time between two looks at a process that is to end.
LEAVE_POLL_US = 1000

T = TypeVar("T")


class CarryOut(Protocol):
    """Carries out what blocks, in this thread or in another. `label`: what is waited for."""

    def __call__(self, work: Callable[[], T], label: str, /) -> Awaitable[T]: ...


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


class NodeProcess(ABC):
    """A process (or a container) with nodes in it. `may_end`: whether it has been asked to end."""

    #: The exit codes that are in order, beside that of a kill.
    ends: ClassVar[frozenset[int]] = frozenset({0})

    def __init__(self, nodes: list[str], process: ManagedProcess) -> None:
        self.nodes = nodes
        self.may_end = False
        self._process = process

    @property
    def process(self) -> ManagedProcess:
        """What faults act on."""
        return self._process

    @abstractmethod
    def start(self, spec: NodeSpec) -> None:
        """Start a further node in it. Raises TrialError."""

    @abstractmethod
    def tell(self, command: Command) -> None:
        """Send it a command. Raises TrialError if it does not accept it, as when it has ended."""

    def start_again(self) -> None:
        """Start it after its end, with the nodes that it began with. Raises TrialError."""
        if self.process.exit_code is None:
            raise TrialError(f"{self.process.describe()} cannot be started again: it runs; kill it first")
        self.process.launch()
        self.may_end = False

    def check(self) -> None:
        """Raise TrialError if it ended without being asked to, or ended badly."""
        code = self.process.exit_code
        if code is not None and (not self.may_end or code not in {*self.ends, self.process.killed}):
            raise TrialError(f"{self.process.describe()} ended with {code}{self.process.log_tail()}")

    def wait(self) -> None:
        """Wait until it ends, a moment after its nodes have left, and check its exit code. Raises TrialError."""
        try:
            self.process.wait(END_LIMIT_S)
        except EmbeddedServerError as late:
            raise TrialError(f"{', '.join(self.nodes)} left, and the process did not end: {late}") from late
        self.check()

    def end(self) -> None:
        """Kill it if it still runs (only after a failure), and give back what it took."""
        self.process.kill()


class LabProcess(NodeProcess):
    """One of ours (`roles.main`). `make`: the process of a name and a command, started."""

    def __init__(
        self, name: str, specs: list[NodeSpec], folder: Path, make: Callable[[str, Path], CommandedProcess]
    ) -> None:
        spec_file = folder / f"{name}.spec"
        spec_file.write_bytes(msgspec.json.encode(specs))
        self._commanded = make(name, spec_file)
        super().__init__([spec.actor for spec in specs], self._commanded)

    def start(self, spec: NodeSpec) -> None:
        self.nodes.append(spec.actor)
        self.tell(Start(msgspec.Raw(msgspec.json.encode(spec))))

    def tell(self, command: Command) -> None:
        try:
            self._commanded.write_line(msgspec.json.encode(command) + b"\n")
        except OSError as error:
            raise TrialError(f"{self.process.describe()} does not accept commands: {error}") from error

    def end(self) -> None:
        self._commanded.end()


class ChildProcess(OsProcess, CommandedProcess):
    """A Python of this machine that runs `roles.main`. Its output, also that of later lives, goes to one file."""

    def __init__(self, name: str, spec_file: Path) -> None:
        super().__init__(name, spec_file.with_suffix(".stderr"))
        self._spec_file = spec_file
        self.log_file.write_bytes(b"")
        self.launch()

    def launch(self) -> None:
        self._close_stdin()
        command = [sys.executable, "-m", "rebalance_lab.roles.main", str(self._spec_file.resolve())]
        self._spawn(command, self.log_file, append=True, stdin=subprocess.PIPE)

    def write_line(self, line: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line)
        self.popen.stdin.flush()

    def end(self) -> None:
        self.kill()
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with suppress(OSError):  # what it did not take any more would be written again
                self._popen.stdin.close()


def on_this_machine(name: str, specs: list[NodeSpec], folder: Path) -> LabProcess:
    """A child process of this one with these nodes."""
    return LabProcess(name, specs, folder, ChildProcess)


async def at_once(work: Callable[[], T], _label: str) -> T:
    """Signals of this machine take effect in microseconds, so nothing waits for them."""
    return work()


class LiveNode(ABC):
    """The faults' handle on a live node (`trials.stage.ProcessHandle`); each world adds its connections. `carry_out`:
    how what blocks is carried out. `lose_power`: cuts its files back (`world.live.synced_lengths`)."""

    def __init__(
        self,
        actor: str,
        runs_in: NodeProcess,
        kernel: Kernel,
        lose_power: Callable[..., PowerLoss],
        carry_out: CarryOut,
    ) -> None:
        self.actor = actor
        self.runs_in = runs_in
        self._kernel = kernel
        self._lose_power = lose_power
        self._carry_out = carry_out

    async def pause(self) -> str:
        return await self._done("paused", RunState.STOPPED, self._own().process.pause)

    async def resume(self) -> str:
        process = self._own().process

        def wake() -> None:
            if process.state is not RunState.STOPPED:
                raise TrialError(f"{self.actor} did not stay paused: another process resumed {process.describe()}")
            process.resume()

        return await self._done("running", RunState.ALIVE, wake)

    async def kill(self) -> str:
        own = self._own()
        own.may_end = True

        def end() -> None:
            own.process.kill()
            code, killed = own.process.exit_code, own.process.killed
            if code != killed:
                raise TrialError(f"{own.process.describe()} ended with {code}, not by a kill ({killed})")

        return await self._done("gone", RunState.GONE, end)

    async def start_again(self) -> str:
        own = self._own()
        if own.may_end:  # it was killed, or asked to leave
            give_up_us = self._kernel.now_us() + LEAVE_LIMIT_US
            while await self._carry_out(lambda: own.process.exit_code, f"{self.actor} to end") is None:
                if self._kernel.now_us() > give_up_us:
                    raise TrialError(f"{own.process.describe()} did not end within {LEAVE_LIMIT_US} µs")
                await self._kernel.sleep(LEAVE_POLL_US)
        return await self._done("running again", RunState.ALIVE, own.start_again)

    async def lose_power(self, *, everything: bool = False) -> PowerLoss:
        process = self._own().process
        if await self._carry_out(lambda: process.exit_code, f"{self.actor} to be gone") is None:
            raise TrialError(f"{self.actor} cannot lose its power: {process.describe()} runs; kill it first")
        return self._lose_power(everything=everything)

    def ask_to_leave(self) -> None:
        self.runs_in.may_end = True
        if len(self.runs_in.nodes) > 1:
            self.runs_in.tell(Leave(self.actor))
        else:
            self.runs_in.process.terminate()

    async def expire(self) -> str:
        self.runs_in.tell(Expire(self.actor))
        process = self.runs_in.process
        return f"{process.describe()} was told to close the session of {self.actor} on a second connection"

    @abstractmethod
    async def cut(self, *, to_server: bool, to_client: bool) -> str: ...
    @abstractmethod
    async def heal(self) -> str | None: ...
    @abstractmethod
    async def lose_next_reply(self, created: str = "") -> str: ...

    def _own(self) -> NodeProcess:
        if len(self.runs_in.nodes) > 1:
            others = ", ".join(each for each in self.runs_in.nodes if each != self.actor)
            where = self.runs_in.process.describe()
            raise TrialError(f"{self.actor} shares {where} with {others}: give it a process of its own")
        return self.runs_in

    async def _done(self, what: str, wanted: RunState, work: Callable[[], None]) -> str:
        """Do it, and look at the result."""
        process = self.runs_in.process

        def do() -> str:
            try:
                work()
                if process.state is not wanted:
                    raise TrialError(f"{self.actor} is not {what}: {process.proof()}")
                return process.proof()
            except EmbeddedServerError as failed:
                raise TrialError(f"{self.actor} is not {what}: {failed}") from failed

        return await self._carry_out(do, f"{self.actor} to be {what}")


class ProxiedNode(LiveNode):
    """A node in a process of this machine. `proxies`: those that its connections go through, one for each server in its
    connect string; empty if it is not proxied."""

    def __init__(
        self,
        actor: str,
        runs_in: NodeProcess,
        kernel: Kernel,
        lose_power: Callable[..., PowerLoss],
        carry_out: CarryOut,
        *,
        proxies: list[TcpProxy],
    ) -> None:
        super().__init__(actor, runs_in, kernel, lose_power, carry_out)
        self._proxies = proxies

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
