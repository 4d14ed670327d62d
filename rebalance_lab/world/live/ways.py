"""One direction of a TCP connection, and what a fault does to it here, before the operating system has it or after."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.proxy_connection import Withheld
from rebalance_lab.world.tcp import RETRY_DATA_US, retried_us

#: Bytes, or None for the end of the connection.
Passed = bytes | None


@dataclass(slots=True)
class LinkCounts:
    """What was done to the connections of a link: the proof that a fault took effect. `held_bytes`: of a silent way;
    `slowed_bytes`: of a slow one; `hung`: connection attempts."""

    held_bytes: int = 0
    slowed_bytes: int = 0
    hung: int = 0


class Way:
    """Open, slow or silent. What a silent way lost goes on when TCP would send it again (`world.tcp`); until then what
    comes after it waits behind it."""

    def __init__(self, clock: AsyncioDriver, counts: LinkCounts, forward: Callable[[Passed], None]) -> None:
        self._counts = counts
        self._clock = clock
        self._forward = forward
        self._silent = False
        self._slow_us = 0
        self._lost = Withheld()
        self._lost_end = False
        #: When each goes on.
        self._late: deque[tuple[int, Passed]] = deque()

    def pass_on(self, data: Passed) -> None:
        size = 0 if data is None else len(data)
        if self._silent or self._lost.since_us is not None:
            self._lost.add(self._clock.now_us(), data or b"")
            self._lost_end |= data is None
            self._counts.held_bytes += size
        elif self._slow_us or self._late:
            due_us = self._clock.now_us() + self._slow_us
            self._late.append((max(due_us, self._late[-1][0]) if self._late else due_us, data))
            self._clock.call_at(self._late[-1][0], self._go_on)
            self._counts.slowed_bytes += size
        else:
            self._forward(data)

    def set(self, *, silent: bool, slow_us: int) -> None:
        """From now it is so."""
        self._silent, self._slow_us = silent, slow_us
        if silent:
            self._lost.stop_retry()
        elif self._lost.since_us is not None and self._lost.retry is None:
            again_us = retried_us(self._lost.since_us, self._clock.now_us(), RETRY_DATA_US)
            self._lost.retry = self._clock.call_at(again_us, self._send_again)

    def drop(self) -> None:
        """Nothing goes on any more: the connection was reset."""
        self._lost.take()
        self._late.clear()

    def _send_again(self) -> None:
        if data := self._lost.take():
            self.pass_on(data)
        if self._lost_end:
            self.pass_on(None)

    def _go_on(self) -> None:
        if self._late:
            self._forward(self._late.popleft()[1])
