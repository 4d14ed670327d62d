"""The watcher executor (facts 3.5): it runs the rebalances that watches ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Kernel
from zkconsumer.report import Report

#: It looks at the shutdown flag at least this often.
WAKE_PERIOD_US = 1_000_000


class Watcher:
    """A flag and the task that takes it. Triggers carry nothing and coalesce: what comes
    during a rebalance causes exactly one more. As a listener it hears child and data changes."""

    def __init__(self, tasks: Kernel, report: Report, *, name: str) -> None:
        self._tasks = tasks
        self._report = report
        self._flag = tasks.flag(f"{name} triggered")

    @property
    def triggered(self) -> bool:
        """A trigger waits that no rebalance has taken."""
        return self._flag.raised

    async def run(self, rebalance: Callable[[], Awaitable[None]], shutting_down: Callable[[], bool]) -> None:
        """Rebalance whenever triggered, until shutdown. A failure is logged, and that is all."""
        while not shutting_down():
            await self._tasks.first(self._flag.wait(), self._tasks.sleep(WAKE_PERIOD_US))
            if not self._flag.raised:
                continue
            self._flag.clear()
            try:
                await rebalance()
            except Exception as error:  # as in 0.8.2
                self._report.warned(f"error during syncedRebalance: {error}")

    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        self._trigger(path)

    async def handle_data_change(self, path: str, data: bytes) -> None:
        self._trigger(path)

    async def handle_data_deleted(self, path: str) -> None:
        self._report.warned(f"Topic for path {path} gets deleted, which should not happen at this time")

    def _trigger(self, path: str) -> None:
        self._report.step(Kind.REBALANCE_TRIGGERED, path=path, coalesced=self._flag.raised)
        self._flag.raise_()
