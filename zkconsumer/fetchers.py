"""Fetchers. Until there are brokers they are a lease: what they would read, they report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.kernel import Kernel, Scope, Task, TaskCancelled
from zkconsumer.group_view import GroupView
from zkconsumer.report import Report


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The lab's own settings of a member's effect, in ms.

    `work_period_ms`: how often work on each partition is reported. `stop_ms`: how long fetchers
    take to stop, as 0.8's did in the middle of a fetch (up to fetch.wait.max.ms, 100, when all is
    well; up to the socket's time-out when not: facts 8.6, F2). They work until they have stopped.
    Raises ValueError for a period below 1 or a negative stop.
    """

    work_period_ms: int = 50
    stop_ms: int = 0

    def __post_init__(self) -> None:
        if self.work_period_ms < 1 or self.stop_ms < 0:
            raise ValueError(f"{self}: work_period_ms must be at least 1 and stop_ms at least 0")


class Fetchers:
    """The member's effect: WORKED on every partition each period, from start to stop.

    It may outlive belief, as in 0.8: nothing but `stop` ends it. The first report comes at
    once and the last at the stop; one that fell due while the process stood still comes when it goes on.
    """

    def __init__(
        self,
        tasks: Kernel,
        scope: Scope,
        report: Report,
        *,
        name: str,
        lease: LeaseSettings,
        finder: LeaderFinder | None = None,
    ) -> None:
        self._tasks = tasks
        self._scope = scope
        self._report = report
        self._name = name
        self._period_us = lease.work_period_ms * 1000
        self._stop_us = lease.stop_ms * 1000
        self._partitions: tuple[TopicPartition, ...] = ()
        self._task: Task[None] | None = None
        self._working = False
        self._finder = finder

    def start(self, partitions: Iterable[TopicPartition]) -> None:
        """Work on these; on those too that are still worked on, if they were not stopped."""
        self._partitions = tuple(sorted({*self._partitions, *partitions}))
        if self._partitions and self._task is None:
            self._task = self._scope.spawn(self._work(), f"{self._name}-fetchers")

    async def stop(self) -> None:
        """Done when nothing is worked on any more. What was worked on until now is reported once
        more, so that the effect's end is known exactly, not to a period."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._working:
            if self._stop_us:
                await self._tasks.sleep(self._stop_us)
            self._report_all()
        self._partitions, self._working = (), False
        task.cancel("fetchers stop", origin=self)
        try:
            await task
        except TaskCancelled:
            return

    async def _work(self) -> None:
        if self._finder is not None:
            await self._finder.find(self._partitions)
        self._working = True
        while True:
            self._report_all()
            await self._tasks.sleep(self._period_us)

    def _report_all(self) -> None:
        for each in self._partitions:
            self._report.worked(each)


class LeaderFinder:
    """The pass of 0.8.2's leader finder that costs ZooKeeper something: it reads all brokers
    (1+B reads), before any fetcher can start. Asking them for leaders comes with brokers."""

    def __init__(self, tasks: Kernel, view: GroupView, report: Report, *, backoff_ms: int) -> None:
        self._tasks = tasks
        self._view = view
        self._report = report
        self._backoff_us = backoff_ms * 1000

    async def find(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Done when there are brokers. Tries without end, as in 0.8.2; `stop` cancels it."""
        while True:
            try:
                if await self._view.brokers():
                    return
            except Exception as error:  # as in 0.8.2: logged, and tried again
                names = ", ".join(f"[{each.topic},{each.partition}]" for each in partitions)
                self._report.warned(f"Failed to find leader for Set({names}): {error}")
            await self._tasks.sleep(self._backoff_us)
