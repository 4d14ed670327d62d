"""Nodes in containers of their own, with docker as the means of faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rebalance_lab.kernel import Future
from rebalance_lab.roles.spec import Command, Expire, Leave, NodeSpec, Start
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.containers.container import KILLED
from rebalance_lab.world.containers.member import TRIAL_DIR, ProcessContainer
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.process.states import RunState

T = TypeVar("T")

#: Nodes that left have closed their sessions; their interpreters end a moment later.
END_LIMIT_S = 30.0

#: Runs a blocking call in a thread, and returns a future of the kernel.
Threads = Callable[[Callable[[], Any], str], Future[Any]]


class ContainerHost:
    """A container with the nodes in it (`roles.main`)."""

    def __init__(
        self, name: str, specs: list[NodeSpec], folder: Path, make: Callable[[str, list[str]], ProcessContainer]
    ) -> None:
        self.name = name
        self.nodes = [spec.actor for spec in specs]
        self.may_end = False
        self._log = folder / f"{name}.stderr"
        (folder / f"{name}.spec").write_bytes(msgspec.json.encode(specs))
        self.container = make(name, ["python", "-m", "rebalance_lab.roles.main", str(TRIAL_DIR / f"{name}.spec")])

    def start(self, spec: NodeSpec) -> None:
        """Start a further node in it."""
        self.nodes.append(spec.actor)
        self.tell(Start(msgspec.Raw(msgspec.json.encode(spec))))

    def tell(self, command: Command) -> None:
        """Write a command to its standard input. Raises TrialError if it has ended; docker's socket takes more."""
        if self.container.exit_code is not None:
            raise TrialError(f"container {self.name} does not accept commands: it has ended")
        try:
            self.container.tell(msgspec.json.encode(command) + b"\n")
        except OSError as error:
            raise TrialError(f"container {self.name} does not accept commands: {error}") from error

    def check(self) -> None:
        """Raise TrialError if it ended without being asked to, or ended badly."""
        code = self.container.exit_code
        if code is not None and (not self.may_end or code not in {0, KILLED}):
            raise TrialError(f"container {self.name} ended with {code}; its log ends:\n{self.container.log()}")

    def wait(self) -> None:
        """Wait until it has ended, and check its exit code."""
        self.container.wait(END_LIMIT_S)
        self.check()

    def end(self) -> None:
        """Keep its output, and remove it."""
        try:
            self._log.write_text(self.container.log("all"))
        finally:
            self.container.remove()


class ContainerNode:
    """The faults' handle on a node (`trials.stage.ProcessHandle`). Docker cuts both ways or none, and cannot lose a
    single reply."""

    def __init__(self, actor: str, host: ContainerHost, threads: Threads, lose_power: Callable[..., PowerLoss]) -> None:
        self.actor = actor
        self.host = host
        self._threads = threads
        self._lose_power = lose_power

    # -- its process ------------------------------------------------------------------------

    async def pause(self) -> str:
        own = self._own_container()
        return await self._done(own.pause, RunState.STOPPED, "paused")

    async def resume(self) -> str:
        own = self._own_container()

        def wake() -> None:
            if own.state is not RunState.STOPPED:
                raise TrialError(f"{self.actor} did not stay paused: another process resumed {own.container.name}")
            own.resume()

        return await self._done(wake, RunState.ALIVE, "running")

    async def kill(self) -> str:
        own = self._own_container()
        self.host.may_end = True

        def end() -> str:
            own.kill()
            code = own.exit_code
            if code != KILLED:
                raise TrialError(f"{self.actor}: {own.container.name} ended with {code}, not by a kill ({KILLED})")
            return f"docker: {own.container.name} ended with {code}"

        return str(await self._threads(end, f"{self.actor} to be gone"))

    async def start_again(self) -> str:
        own = self._own_container()

        def start() -> None:
            if own.exit_code is None:
                raise TrialError(f"{self.actor}: {own.container.name} runs; kill it before it is started again")
            own.launch()

        shown = await self._done(start, RunState.ALIVE, "running again")
        self.host.may_end = False
        return shown

    async def lose_power(self, *, everything: bool = False) -> PowerLoss:
        if self._own_container().exit_code is None:
            raise TrialError(f"{self.actor} cannot lose its power: its container runs; kill it first")
        return self._lose_power(everything=everything)

    def ask_to_leave(self) -> None:
        self.host.may_end = True
        if len(self.host.nodes) > 1:
            self.host.tell(Leave(self.actor))
        else:
            self.host.container.signal("SIGTERM")

    async def expire(self) -> str:
        self.host.tell(Expire(self.actor))
        return f"container {self.host.name} was told to close the session of {self.actor} on a second connection"

    def _own_container(self) -> ProcessContainer:
        if len(self.host.nodes) > 1:
            others = ", ".join(each for each in self.host.nodes if each != self.actor)
            raise TrialError(f"{self.actor} shares container {self.host.name} with {others}: give it one of its own")
        return self.host.container

    async def _done(self, work: Callable[[], None], wanted: RunState, word: str) -> str:
        """Let docker do it, and check the result; both in a thread."""
        own = self.host.container

        def do() -> str:
            work()
            if own.state is not wanted:
                raise TrialError(
                    f"{self.actor}: docker says {own.container.status} of {own.container.name}, not {word}"
                )
            return f"docker: {own.container.name} is {own.container.status}"

        return str(await self._threads(do, f"{self.actor} to be {word}"))

    # -- its connections --------------------------------------------------------------------

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        own = self._own_container()
        if not (to_server and to_client):
            raise TrialError(f"{self.actor}: docker cuts only both ways; to cut one way use --world processes")
        await self._threads(own.cut_off, f"{self.actor} to be cut off")
        return f"docker: {own.container.name} was disconnected from its network"

    async def heal(self) -> str | None:
        own = self._own_container()

        def back() -> bool:
            """False if another process has connected it again."""
            if own.connected:
                return False
            own.heal()
            return True

        healed = await self._threads(back, f"{self.actor} to be healed")
        return f"it had none until now, and is back at {own.address}" if healed else None

    async def lose_next_reply(self, created: str = "") -> str:
        raise TrialError(f"{self.actor}: docker cannot lose a single reply; use --world processes")
