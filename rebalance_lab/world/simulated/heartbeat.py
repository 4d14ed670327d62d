"""Pings of one connection, while it is in trouble.

While all is well pings are not simulated: nothing follows from them, and 100,000 idle sessions
cost nothing. When a connection may have fallen silent its client pings after a third of the session
timeout without anything sent, and gives the connection up when nothing came for two thirds. So does
ClientCnxn; `live.link` says when that pings earlier.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.kernel import Kernel, Timer
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.messages import HEARTBEAT


class Heartbeat:
    """From now until `stop`; `silent` is called when nothing came for too long.

    `heard_us`: when something came last by `link`, as far as is known.
    """

    __slots__ = ("_heard_us", "_kernel", "_link", "_ping_us", "_read_us", "_sent_us", "_silent", "_timer")

    def __init__(
        self, kernel: Kernel, link: Link, session_timeout_ms: int, heard_us: int, silent: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._link = link
        self._read_us = session_timeout_ms * 2000 // 3
        self._ping_us = session_timeout_ms * 1000 // 3
        self._heard_us = self._sent_us = heard_us
        self._silent = silent
        self._timer: Timer
        self._arm()

    def stop(self) -> None:
        self._timer.cancel()

    def heard_us(self) -> int:
        """When the client last heard something."""
        self._heard_us = max(self._heard_us, self._link.heard_us(self._kernel.now_us()))
        return self._heard_us

    def _beat(self) -> None:
        now_us = self._kernel.now_us()
        self.heard_us()
        if now_us - self._heard_us >= self._read_us:
            self._silent()
            return
        if now_us - self._sent_us >= self._ping_us:
            self._link.to_server(HEARTBEAT)
            self._sent_us = now_us
        self._arm()

    def _arm(self) -> None:
        due_us = min(self._heard_us + self._read_us, self._sent_us + self._ping_us)
        self._timer = self._kernel.call_at(due_us, self._beat, process=self._link.process)
