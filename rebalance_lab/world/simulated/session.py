"""A session in the simulator: the session of every world, with pings only when they matter.

While all is well a client's pings change nothing, so 100,000 idle sessions need no timer. A connection gets a
heartbeat when it may have fallen silent, and loses it when a ping is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lab.world.ports import SessionState
from rebalance_lab.world.simulated.link import ServerEnd
from rebalance_lab.world.zk.connect_string import Chroot
from rebalance_lab.world.zk.messages import PING, Connected
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.session import Session
from rebalance_lab.world.zk.transport import Connection

if TYPE_CHECKING:
    from rebalance_lab.world.simulated.endpoint import Endpoint


class SimulatedSession(Session[ServerEnd]):
    """A `Session` of a process that can be paused."""

    __slots__ = ("_endpoint",)

    def __init__(
        self,
        endpoint: Endpoint,
        server_list: ServerList[ServerEnd],
        chroot: Chroot,
        session_timeout_ms: int,
    ) -> None:
        self._endpoint = endpoint
        super().__init__(endpoint, server_list, chroot, session_timeout_ms)

    def _connected(self, link: Connection, message: Connected) -> None:
        if self._watches and message.timeout_ms > 0:
            self._xid += 1  # as ClientCnxn counts SetWatches: histories hold the xids of writes as cxids
        super()._connected(link, message)

    def heard_us(self, at_server_us: int | None) -> int:
        """When the client last heard something by its connection, or began the attempt at one.
        `at_server_us`: when the server last heard the client; None where it has no such session."""
        if self.state is not SessionState.CONNECTED:
            return self._dialed_us
        if self._heartbeat is not None:
            return self._heartbeat.heard_us()
        return self._endpoint.kernel.now_us() if at_server_us is None else at_server_us

    def ping(self) -> None:
        """One is due after a pause, when what came meanwhile has been read."""
        if self._link is not None and self.state is SessionState.CONNECTED:
            self._link.to_server(PING)

    def _ponged(self) -> None:
        """All is well again, unless messages are lost."""
        if self._heartbeat is not None and not self._endpoint.cut:
            self._heartbeat.stop()
            self._heartbeat = None
