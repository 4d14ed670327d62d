"""Retries, as Kafka's clients make them (`retry.backoff.ms`, `default.api.timeout.ms`; 3.9.1), for a bounded time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from rebalance_lab.client.cluster import NoBroker, RefusedByBroker
from rebalance_lab.client.records import MOVED
from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode

T = TypeVar("T")

RETRY_PAUSE_MS = 100

#: A broker that has just started does not know the topics yet. What is unknown for longer does not exist.
UNKNOWN_LIMIT_MS = 2_000


async def with_retries(
    tasks: Kernel, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int, repeatable: bool = True
) -> T:
    """The result of `attempt`, repeated for `timeout_ms` while leaders move or brokers are away.

    `repeatable`: whether it may be repeated if nobody knows whether a broker has carried it out. Raises the last error:
    NoBroker or RefusedByBroker, and at once whatever a retry does not help against.
    """
    began_us = since_us = tasks.now_us()
    was_unknown = False
    error: Exception
    while True:
        try:
            return await attempt()
        except RefusedByBroker as refused:
            if refused.code not in MOVED:
                raise
            unknown = refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if unknown and not was_unknown:  # a broker that was away before has just come back
                since_us = tasks.now_us()
            limit_ms, error = min(timeout_ms, UNKNOWN_LIMIT_MS) if unknown else timeout_ms, refused
        except NoBroker as unanswered:
            if not repeatable:
                raise
            unknown, limit_ms, error = False, timeout_ms, unanswered
        was_unknown = unknown
        if tasks.now_us() - (since_us if unknown else began_us) >= limit_ms * 1000:
            raise error
        await tasks.sleep(RETRY_PAUSE_MS * 1000)
