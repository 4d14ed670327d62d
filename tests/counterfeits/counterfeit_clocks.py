"""Members that hear of changes, do nothing about them, and rebalance whenever a clock strikes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from counterfeit import trial
from counterfeit_timers import noted

from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer
from zkconsumer.watcher import Watcher

_SYNCED = Rebalancer.synced

#: A member does not rebalance for a stroke so soon after its last rebalance.
_IDLE_US = 700_000

#: Members start, and stop their fetchers, within a few ms, so that what a change sets off comes between two strokes.
FAST = {"fetcher_stop_ms": "0", "start_min_us": "0", "start_max_us": "0"}

#: In a herd the id of a member that crashes goes almost at once, too.
FAST_HERD = {**FAST, "members": "4", "tick_ms": "50", "session_timeout_ms": "100"}

#: Latencies with which the requests of one attempt may take 0.9 s.
SLOW_HERD = {**FAST, "members": "4", "tick_ms": "100", "session_timeout_ms": "200"}
SLOW = {"latency_min_us": "200", "latency_max_us": "12000"}


@contextmanager
def clock(period_us: int) -> Iterator[None]:
    """All members rebalance at each full period of the clock, and for nothing else once they have joined."""
    ended: dict[Rebalancer, int] = {}

    async def synced(self: Rebalancer, by: str) -> None:
        ended.pop(self, None)
        await _SYNCED(self, by)
        ended[self] = self._tasks.now_us()

    async def run(self: Watcher, rebalance: Callable[[], Awaitable[None]], shutting_down: Callable[[], bool]) -> None:
        one: Rebalancer = rebalance.__self__._rebalancer  # type: ignore[attr-defined]
        while not shutting_down():
            await self._tasks.sleep(period_us - self._tasks.now_us() % period_us)
            idle_since_us = ended.get(one)
            if not shutting_down() and idle_since_us is not None and self._tasks.now_us() - idle_since_us >= _IDLE_US:
                await rebalance()

    with patch.object(Rebalancer, "synced", synced), patch.object(Watcher, "run", run), noted():
        yield


def by_the_clock(scenario: str, period_us: int, settings: dict[str, str]) -> Callable[[int], History]:
    """Trials of a scenario with such members."""

    def false(seed: int) -> History:
        with clock(period_us):
            return trial(scenario, seed, settings=settings)

    return false
