"""Members that report rebalances which they do not carry out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rebalance_lab.history.events import Kind
from zkconsumer.rebalance import Rebalancer
from zkconsumer.report import Report

_SYNCED = Rebalancer.synced
_STEP = Report.step

_VANISHED = "NoNode: /brokers/ids/0"


async def members(one: Rebalancer) -> list[str]:
    """The members of its group."""
    return list((await one._view._members())[0])


async def same_topics(one: Rebalancer) -> list[str]:
    """The members that read a topic of this one."""
    mine = await one._view.threads(one._settings.consumer_id)
    return [each for each in await members(one) if mine.keys() & (await one._view.threads(each)).keys()]


@contextmanager
def pretending(
    look: Callable[[Rebalancer], Awaitable[list[str]]], *, attempts: int, decides: bool = False, lists: bool = False
) -> Iterator[None]:
    """Where a watch asks for a rebalance, a member looks first. If it sees what it saw the last time it reports a
    rebalance with so many attempts of which the last succeeded, and does nothing. `decides`: it reports its former
    decision in the last one. `lists`: it lists the members before, and reports that list."""
    seen: dict[Rebalancer, list[str]] = {}
    decisions: dict[Report, dict[str, Any]] = {}

    def step(self: Report, kind: Kind, **detail: Any) -> None:
        if kind is Kind.DECIDED:
            decisions[self] = detail
        _STEP(self, kind, **detail)

    async def synced(self: Rebalancer, by: str) -> None:
        before, seen[self] = seen.get(self), await look(self)
        report = self._report
        if by != "watcher" or seen[self] != before or (decides and report not in decisions):
            await _SYNCED(self, by)
            return
        report.step(Kind.REBALANCE_BEGAN, by=by)
        for number in range(attempts):
            if number:
                report.step(Kind.ATTEMPT_FAILED, attempt=number - 1, why=_VANISHED, reason="error", conflicts=[])
            report.step(Kind.ATTEMPT_BEGAN, attempt=number)
        if lists:
            listed, zxid = await self._view._members()
            decisions[report] = {**decisions[report], "members": len(listed), "members_zxid": zxid}
        if decides:
            report.step(Kind.DECIDED, **decisions[report])
        report.step(Kind.REBALANCE_ENDED, outcome="ok", attempts=attempts)

    with patch.object(Rebalancer, "synced", synced), patch.object(Report, "step", step):
        yield
