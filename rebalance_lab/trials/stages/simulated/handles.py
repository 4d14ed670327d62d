"""The faults' handles in the simulator (`trials.stage.ProcessHandle`, `trials.stage.Servers`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rebalance_lab.history.rest import StateTracker
from rebalance_lab.kernel import Flag, Kernel, Process, ProcessState, Task
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.power_loss import PowerLoss
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.network import SimulatedNetwork
from rebalance_lab.world.simulated.world import host_of
from rebalance_lab.world.simulated.zookeeper import NoSuchSession, SimulatedZooKeeper

#: The time between two looks at a condition of the simulated servers, in virtual time.
POLL_US = 1000

#: The longest wait for a leader or for a lost reply, in virtual time.
LIMIT_US = 60_000_000


class Life(NamedTuple):
    """A node's life in a simulated process. `closing`: asks it to leave. `task`: is done when it has left."""

    process: Process
    closing: Flag
    task: Task[None]


class SimulatedNode:
    """A node in a simulated process of its own. `launch`: starts it in a new process."""

    def __init__(
        self,
        actor: str,
        launch: Callable[[], Life],
        disk: SimulatedDisk,
        zookeeper: SimulatedZooKeeper,
        tracker: StateTracker[Any],
        kernel: Kernel,
    ) -> None:
        self.actor = actor
        self._launch = launch
        self._process, self._closing, self._task = launch()
        self._disk = disk
        self._zookeeper = zookeeper
        self._tracker = tracker
        self._kernel = kernel

    async def pause(self) -> str:
        self._process.pause()
        return self._shown()

    async def resume(self) -> str:
        self._process.resume()
        return self._shown()

    async def kill(self) -> str:
        self._process.kill()
        return self._shown()

    async def start_again(self) -> str:
        if self._closing.raised and self._process.state is ProcessState.RUNNING:
            await self._task  # its session has ended already, and the rest of it ends soon
            self._process.kill()
        if self._process.state is not ProcessState.KILLED:
            raise TrialError(f"{self.actor} cannot be started again: it is {self._process.state.value}; kill it first")
        self._process, self._closing, self._task = self._launch()
        return self._shown()

    async def lose_power(self, *, everything: bool = False) -> PowerLoss:
        if self._process.state is not ProcessState.KILLED:
            raise TrialError(f"{self.actor} cannot lose its power: it is {self._process.state.value}; kill it first")
        return self._disk.lose_power(everything=everything)

    def ask_to_leave(self) -> None:
        self._closing.raise_()

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        self._zookeeper.cut(self._process, to_server=to_server, to_client=to_client)
        ways = [name for name, way in (("to the server", to_server), ("to the client", to_client)) if way]
        return f"links of {self.actor} lose what goes {' and '.join(ways)}"

    async def heal(self) -> str | None:
        self._zookeeper.heal(self._process)
        return f"links of {self.actor} pass everything"

    async def lose_next_reply(self, created: str = "") -> str:
        session = self._session()
        give_up_us = self._kernel.now_us() + LIMIT_US
        what = f"created in {created}" if created else "asked for"
        try:
            self._zookeeper.lose_next_reply(session, created)
            while self._zookeeper.loses_next_reply(self._process):
                if self._kernel.now_us() > give_up_us:
                    raise TrialError(f"{self.actor} {what} nothing within {LIMIT_US} µs: no reply could be lost")
                await self._kernel.sleep(POLL_US)
        except NoSuchSession as error:
            raise TrialError(f"{self.actor}: {error}") from error
        return f"session {session:#x}: a request was processed, its reply lost with the connection"

    async def expire(self) -> str:
        session = self._session()
        try:
            self._zookeeper.expire(session)
        except NoSuchSession as error:
            raise TrialError(f"{self.actor}: {error}") from error
        return f"session {session:#x} was closed on a second connection"

    def _session(self) -> int:
        state = self._tracker.nodes.get(self.actor)
        if state is None or state.session is None:
            raise TrialError(f"{self.actor} has no session yet")
        return int(state.session, 16)

    def _shown(self) -> str:
        return f"kernel process {self._process.name} is {self._process.state.value}"


class SimulatedLinks:
    """The connections between simulated nodes (`trials.stage.Links`)."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network

    async def set(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_ms: tuple[int, int] = (0, 0)
    ) -> str:
        there_ms, back_ms = slow_ms
        slow_us = (there_ms * 1000, back_ms * 1000)
        return self._network.set_link(host_of(one), host_of(other), silent=silent, slow_us=slow_us)


class SimulatedServers:
    """The simulated ensemble."""

    def __init__(self, zookeeper: SimulatedZooKeeper, kernel: Kernel) -> None:
        self.names = zookeeper.servers
        self._zookeeper = zookeeper
        self._kernel = kernel

    async def leader(self) -> str:
        give_up_us = self._kernel.now_us() + LIMIT_US
        while (leader := self._zookeeper.leader) is None:
            if self._kernel.now_us() > give_up_us:
                raise TrialError(f"no server leads after {LIMIT_US} µs: is a majority up?")
            await self._kernel.sleep(POLL_US)
        return leader

    async def kill(self, name: str) -> str:
        self._zookeeper.kill_server(name)
        return f"simulated server {name} is down"

    async def start(self, name: str) -> str:
        self._zookeeper.start_server(name)
        return f"simulated server {name} was started"

    async def pause(self, name: str) -> str:
        self._zookeeper.pause_server(name)
        return f"simulated server {name} stands still"

    async def resume(self, name: str) -> str:
        self._zookeeper.resume_server(name)
        return f"simulated server {name} goes on"

    async def lag(self, name: str, delay_ms: int) -> str:
        self._zookeeper.lag(name, delay_ms * 1000)
        return f"simulated server {name} applies {delay_ms} ms late"

    async def last_zxid(self, name: str) -> int:
        return self._zookeeper.applied_zxid(name)
