"""Retries, as Kafka's clients make them (`retry.backoff.ms`, `default.api.timeout.ms`; 3.9.1), for a bounded time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from rebalance_lab.client.cluster import NoBroker, RefusedByBroker
from rebalance_lab.client.records import MOVED
from rebalance_lab.kernel import Kernel, TimedOut
from rebalance_lab.wire.kafka.error_codes import ErrorCode

T = TypeVar("T")

RETRY_PAUSE_MS = 100

#: A broker that has just started does not know the topics yet. What is unknown for longer does not exist.
UNKNOWN_LIMIT_MS = 2_000


class Patience:
    """For how long something that fails is tried again: `timeout_ms` from the last success on, or from the beginning.

    A topic or partition that is unknown is given up after UNKNOWN_LIMIT_MS, counted from the first such answer in a
    row, because a broker may just have come back. One that has been there before is waited for as for other errors.
    """

    def __init__(self, tasks: Kernel, timeout_ms: int) -> None:
        self._tasks = tasks
        self._timeout_ms = timeout_ms
        self._began_us = tasks.now_us()
        self._unknown_since_us: int | None = None
        self._was_there = False

    @property
    def left_us(self) -> int:
        return max(0, self._began_us + self._timeout_ms * 1000 - self._tasks.now_us())

    def succeeded(self) -> None:
        self._began_us = self._tasks.now_us()
        self._unknown_since_us = None
        self._was_there = True

    def failed(self, error: NoBroker | RefusedByBroker) -> None:
        """Returns if another attempt may help; else raises the error."""
        unknown = False
        if isinstance(error, RefusedByBroker):
            if error.code not in MOVED:
                raise error
            unknown = error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._was_there
        if not unknown:
            self._unknown_since_us = None
        elif self._unknown_since_us is None:
            self._unknown_since_us = self._tasks.now_us()
        given_up = (
            self._unknown_since_us is not None
            and self._tasks.now_us() - self._unknown_since_us >= UNKNOWN_LIMIT_MS * 1000
        )
        if given_up or not self.left_us:
            raise error


async def with_retries(
    tasks: Kernel, attempt: Callable[[], Awaitable[T]], *, what: str, timeout_ms: int, repeatable: bool = True
) -> T:
    """The result of `attempt`, repeated while leaders move or brokers are away. After `timeout_ms` all is over, also an
    attempt that is under way.

    `what`: whom or what it needs, for the error then. `repeatable`: whether it may be repeated if nobody knows whether
    a broker has carried it out. Raises the last error: NoBroker or RefusedByBroker, and at once whatever a retry does
    not help against.
    """
    patience = Patience(tasks, timeout_ms)
    last: NoBroker | RefusedByBroker
    while True:
        try:
            async with tasks.timeout(patience.left_us):
                return await attempt()
        except TimedOut:
            raise NoBroker(f"{what}: no broker answers within {timeout_ms} ms", outcome_unknown=True) from None
        except NoBroker as unanswered:
            if unanswered.outcome_unknown and not repeatable:
                raise
            last = unanswered
        except RefusedByBroker as refused:
            last = refused
        patience.failed(last)
        await tasks.sleep(min(RETRY_PAUSE_MS * 1000, patience.left_us))
        if not patience.left_us:
            raise last
