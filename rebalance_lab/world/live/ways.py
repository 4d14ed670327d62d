"""One direction of a TCP connection, and what faults do to it: for the proxy before a ZooKeeper server, and for the
connections between nodes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.tcp import RETRY_DATA_US, retried_us

#: Bytes, or None for the end of the connection.
Passed = bytes | None


@dataclass(slots=True)
class LinkCounts:
    """What was done to connections: the proof that a fault took effect. `held_bytes`: of a silent way; `slowed_bytes`:
    of a slow one; `hung`: connection attempts."""

    held_bytes: int = 0
    slowed_bytes: int = 0
    hung: int = 0


class Way:
    """Open, slow or silent. In a silent way nothing passes, and no end of the connection either. What it lost goes on
    when the way is open again and TCP would send it again (`world.tcp`); until then what comes after it waits behind
    it."""

    def __init__(self, clock: AsyncioDriver, counts: LinkCounts, forward: Callable[[Passed], None]) -> None:
        self._clock = clock
        self._counts = counts
        self._forward = forward
        self._silent = False
        self._slow_us = 0
        #: What was lost, since when, whether the end of the connection was, and when TCP tries again.
        self._lost = bytearray()
        self._lost_since_us: int | None = None
        self._lost_end = False
        self._retry: asyncio.TimerHandle | None = None
        #: What is under way, and when each arrives.
        self._late: deque[tuple[int, Passed]] = deque()

    @property
    def withholds(self) -> bool:
        """Whether what is sent now does not go on now."""
        return self._silent or self._lost_since_us is not None

    def pass_on(self, data: Passed) -> None:
        size = 0 if data is None else len(data)
        if self.withholds:
            if self._lost_since_us is None:
                self._lost_since_us = self._clock.now_us()
            self._lost += data or b""
            self._lost_end |= data is None
            self._counts.held_bytes += size
        elif self._slow_us or self._late:
            due_us = self._clock.now_us() + self._slow_us
            self._late.append((max(due_us, self._late[-1][0]) if self._late else due_us, data))
            self._clock.call_at(self._late[-1][0], self._arrive)
            self._counts.slowed_bytes += size
        else:
            self._forward(data)

    def set(self, *, silent: bool, slow_us: int = 0) -> None:
        """From now it is so."""
        self._silent, self._slow_us = silent, slow_us
        if silent:
            self._stop_retry()
        elif self._lost_since_us is not None and self._retry is None:
            again_us = retried_us(self._lost_since_us, self._clock.now_us(), RETRY_DATA_US)
            self._retry = self._clock.call_at(again_us, self._send_again)

    def drop(self) -> None:
        """Nothing goes on any more: the connection was reset."""
        self._take()
        self._lost_end = False
        self._late.clear()

    def _send_again(self) -> None:
        if data := self._take():
            self.pass_on(data)
        if self._lost_end:
            self.pass_on(None)

    def _take(self) -> bytes:
        """All that was lost; from now nothing is."""
        self._stop_retry()
        data, self._lost, self._lost_since_us = bytes(self._lost), bytearray(), None
        return data

    def _stop_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _arrive(self) -> None:
        if self._late:
            self._forward(self._late.popleft()[1])
