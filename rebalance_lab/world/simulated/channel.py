"""Messages from one simulated server to another: delayed, and in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from rebalance_lab.kernel import Kernel
from rebalance_lab.world.simulated.server import Server

#: A message: what its receiver does with it.
Call = Callable[[], None]


class Channel:
    """One direction between two servers. `delay_us` draws the delay of the next message.

    Commits of the leader may lag: they wait at the receiver, in order, while other messages overtake them. If the
    receiver has lost its leader meanwhile, a message is dropped. A paused receiver reads it when it goes
    on.
    """

    def __init__(self, kernel: Kernel, receiver: Server, delay_us: Callable[[], int]) -> None:
        self._now_us = kernel.now_us
        self._call_at = kernel.driver.call_at
        self._cancel = kernel.driver.cancel
        self._receiver = receiver
        self._delay_us = delay_us
        self._due_us = 0
        self._lag_us = 0
        self._waiting: deque[tuple[int, Call]] = deque()  # came at, message
        self._timer: Any = None

    def lag(self, lag_us: int) -> None:
        """From now commits wait for this long after they came, also those that wait already."""
        self._lag_us = lag_us
        self._let_go()

    def post(self, call: Call) -> None:
        self._call_at(self._next_us(), self._message(call))

    def commit(self, call: Call) -> None:
        """Like `post`, and it may lag."""
        if not self._lag_us and not self._waiting:
            self.post(call)
            return
        self._waiting.append((self._next_us(), self._message(call)))
        if self._timer is None:
            self._let_go()

    def _let_go(self) -> None:
        """What has waited long enough; the next comes in its time."""
        if self._timer is not None:
            self._cancel(self._timer)
            self._timer = None
        while self._waiting and self._waiting[0][0] + self._lag_us <= self._now_us():
            self._waiting.popleft()[1]()
        if self._waiting and self._timer is None:
            self._timer = self._call_at(self._waiting[0][0] + self._lag_us, self._due)

    def _due(self) -> None:
        self._timer = None
        self._let_go()

    def _next_us(self) -> int:
        self._due_us = max(self._now_us() + self._delay_us(), self._due_us)
        return self._due_us

    def _message(self, call: Call) -> Call:
        return partial(self._arrived, self._receiver.term, call)

    def _arrived(self, term: int, call: Call) -> None:
        if self._receiver.term != term:
            return
        if self._receiver.paused:
            self._receiver.mail.append(call)
        else:
            call()
