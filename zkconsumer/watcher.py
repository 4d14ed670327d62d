"""The watcher executor (`ZKRebalancerListener`, 0.8.2): it runs the rebalances that watches ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Kernel
from zkconsumer.plants import Plant
from zkconsumer.report import Report

#: The watcher checks the shutdown flag at least this often.
WAKE_PERIOD_US = 1_000_000


class Watcher:
    """A flag, and the task that rebalances when it is raised. Triggers carry no data and coalesce: those that come
    during a rebalance cause exactly one more. As a listener it receives child and data changes; `triggers` counts
    them."""

    def __init__(self, tasks: Kernel, report: Report, *, name: str, plant: str | None = None) -> None:
        self._tasks = tasks
        self._report = report
        self._flag = tasks.flag(f"{name} triggered")
        self.triggers = 0
        self._plant = plant
        self._idle_wakes = 0

    async def run(self, rebalance: Callable[[], Awaitable[None]], shutting_down: Callable[[], bool]) -> None:
        """Rebalance whenever triggered, until shutdown. A failure is only logged."""
        while not shutting_down():
            await self._tasks.first(self._flag.wait(), self._tasks.sleep(WAKE_PERIOD_US))
            if not self._flag.raised and not self._unasked():
                continue
            self._flag.clear()
            try:
                await rebalance()
            except Exception as error:  # as in 0.8.2
                self._report.warned(f"error during syncedRebalance: {error}")

    def _unasked(self) -> bool:
        self._idle_wakes += 1
        return self._plant == Plant.REBALANCE_UNASKED and self._idle_wakes == 3

    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        self._trigger(path)

    async def handle_data_change(self, path: str, data: bytes) -> None:
        self._trigger(path)

    async def handle_data_deleted(self, path: str) -> None:
        self._report.warned(f"Topic for path {path} gets deleted, which should not happen at this time")

    def _trigger(self, path: str) -> None:
        self._report.step(Kind.REBALANCE_TRIGGERED, path=path, coalesced=self._flag.raised)
        self.triggers += 1
        self._flag.raise_()
