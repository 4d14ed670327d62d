"""Nodes in containers of their own, with docker as the means of faults."""

from __future__ import annotations

from typing import cast

from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.nodes import LiveNode
from rebalance_lab.world.containers.nodes import NodeContainer


class ContainerNode(LiveNode):
    """Docker cuts both ways or none, and cannot lose a single reply."""

    @property
    def _container(self) -> NodeContainer:
        return cast("NodeContainer", self._own().process)  # in this world each is one

    async def cut(self, *, to_server: bool, to_client: bool) -> str:
        own = self._container
        if not (to_server and to_client):
            raise TrialError(f"{self.actor}: docker cuts only both ways; to cut one way use --world processes")
        await self._carry_out(own.cut_off, f"{self.actor} to be cut off")
        return f"docker: {own.container.name} was disconnected from ZooKeeper's network"

    async def heal(self) -> str | None:
        own = self._container

        def back() -> bool:
            """False if another process has connected it again."""
            if own.connected:
                return False
            own.heal()
            return True

        healed = await self._carry_out(back, f"{self.actor} to be healed")
        return f"it was not on ZooKeeper's network until now, and is back at {own.client_address}" if healed else None

    async def lose_next_reply(self, created: str = "") -> str:
        raise TrialError(f"{self.actor}: docker cannot lose a single reply; use --world processes")
