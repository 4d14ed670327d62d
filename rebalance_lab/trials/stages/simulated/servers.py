"""The faults' handle on the simulated ensemble (`trials.stage.Servers`)."""

from __future__ import annotations

from rebalance_lab.kernel import Kernel
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.simulated.nodes import LIMIT_US, POLL_US
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper


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
