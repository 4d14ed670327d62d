"""Members that report rebalances which they do not carry out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from rebalance_lab.history.events import Kind
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


async def members(one: Rebalancer) -> list[str]:
    """The members of its group."""
    return list((await one._view._members())[0])


async def same_topics(one: Rebalancer) -> list[str]:
    """The members that read a topic of this one."""
    mine = await one._view.threads(one._settings.consumer_id)
    return [each for each in await members(one) if mine.keys() & (await one._view.threads(each)).keys()]


@contextmanager
def pretending(look: Callable[[Rebalancer], Awaitable[list[str]]], *, attempts: int) -> Iterator[None]:
    """Where a watch asks for a rebalance, a member looks first. If it sees what it saw the last time it reports a
    rebalance with so many attempts that succeeded, and does nothing."""
    seen: dict[Rebalancer, list[str]] = {}

    async def synced(self: Rebalancer, by: str) -> None:
        before, seen[self] = seen.get(self), await look(self)
        if by != "watcher" or seen[self] != before:
            await _SYNCED(self, by)
            return
        self._report.step(Kind.REBALANCE_BEGAN, by=by)
        for number in range(attempts):
            self._report.step(Kind.ATTEMPT_BEGAN, attempt=number)
        self._report.step(Kind.REBALANCE_ENDED, outcome="ok", attempts=attempts)

    with patch.object(Rebalancer, "synced", synced):
        yield
