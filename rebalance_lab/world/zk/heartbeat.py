"""Pings of one connection, and the end of one that has fallen silent.

As ClientCnxn (SendThread.run of ZooKeeper 3.4.6 to 3.9.3), the client pings after a third of the session timeout
without anything sent, and gives the connection up when nothing came for two thirds.

Java's client also pings when something arrives after it has sent nothing for 10 s (MAX_SEND_PING_INTERVAL) or for a
third of the session timeout less one second. This client does not: a member that is told of a change reads at once,
so it sends something anyway.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.kernel import Kernel, Process, Timer
from rebalance_lab.world.zk.messages import HEARTBEAT
from rebalance_lab.world.zk.transport import Connection


class Heartbeat:
    """Pings from now until `stop`. `silent` is called when nothing came for too long, with the time when something
    came last; `heard_us`: when something came last, as far as is known."""

    __slots__ = ("_heard_us", "_kernel", "_link", "_ping_us", "_process", "_read_us", "_sent_us", "_silent", "_timer")

    def __init__(
        self,
        kernel: Kernel,
        process: Process | None,
        link: Connection,
        session_timeout_ms: int,
        heard_us: int,
        silent: Callable[[int], None],
    ) -> None:
        self._kernel = kernel
        self._process = process
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
        self._sent_us = max(self._sent_us, self._link.sent_us)
        if now_us - self.heard_us() >= self._read_us:
            self._silent(self._heard_us)
            return
        if now_us - self._sent_us >= self._ping_us:
            self._link.to_server(HEARTBEAT)
            self._sent_us = now_us
        self._arm()

    def _arm(self) -> None:
        due_us = min(self._heard_us + self._read_us, self._sent_us + self._ping_us)
        self._timer = self._kernel.call_at(due_us, self._beat, process=self._process)
