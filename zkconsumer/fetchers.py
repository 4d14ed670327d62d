"""Fetchers. Until there are brokers they are a lease: they only report what they would read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.kernel import Kernel, Scope, Task, TaskCancelled
from zkconsumer.group_view import GroupView
from zkconsumer.identifiers import fetcher_id
from zkconsumer.report import Report


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """The lab's own settings of a member's effect, in ms.

    `work_period_ms`: how often work on each partition is reported. `stop_ms`: how long fetchers
    take to stop, as 0.8's did in the middle of a fetch (up to fetch.wait.max.ms, 100, when all is
    well; up to the socket's time-out when not: defect F2). That was on the Javas of its day: on
    Java 17 an interrupt ends the fetch at once. They work until they have stopped.
    Raises ValueError for a period below 1 or a negative stop.
    """

    work_period_ms: int = 50
    stop_ms: int = 0

    def __post_init__(self) -> None:
        if self.work_period_ms < 1 or self.stop_ms < 0:
            raise ValueError(f"{self}: work_period_ms must be at least 1 and stop_ms at least 0")


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """A partition to fetch, and the queue for its messages; None if there is none (F11)."""

    partition: TopicPartition
    queue: int | None = 0


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """`name`: the consumer id. `fetchers`: num.consumer.fetchers; `queue_limit`:
    queued.max.message.chunks."""

    name: str
    lease: LeaseSettings
    fetchers: int = 1
    queue_limit: int = 2


class Fetchers:
    """The member's effect: WORKED on every partition in each period, from start to stop. One report stands for one
    chunk that was fetched and put into its queue.

    Work may outlive belief, as in 0.8: only `stop` ends it. The first report comes at once and the last at the stop; a
    report that was due while the process stood still comes when it continues.

    Fetching can end unnoticed in two ways, while belief and registry show an owner. A partition without a queue kills
    the fetcher that gets its first chunk, and with it all partitions of that fetcher (F11). If no application reads the
    streams, because the create that would have returned them failed, each queue takes `queue_limit` chunks and then its
    fetcher stands still (F9a). Without brokers there are no leaders by which to assign fetchers: a member has one per
    fetcher id.
    """

    def __init__(
        self, tasks: Kernel, scope: Scope, report: Report, settings: FetcherSettings, finder: LeaderFinder
    ) -> None:
        self._tasks = tasks
        self._scope = scope
        self._report = report
        self._settings = settings
        self._finder = finder
        self._period_us = settings.lease.work_period_ms * 1000
        self._stop_us = settings.lease.stop_ms * 1000
        self._shares: tuple[Share, ...] = ()
        self._task: Task[None] | None = None
        self._all_queued = True
        self._working = False
        self._read = False
        self._dead: dict[int, None] = {}
        self._chunks: dict[int, int] = {}

    def streams_returned(self) -> None:
        """The application has its streams, and empties the queues from now on."""
        self._read = True

    def start(self, shares: Sequence[Share]) -> None:
        """Work on these, and also on those that were not stopped."""
        self._shares = tuple(sorted({each.partition: each for each in (*self._shares, *shares)}.values()))
        self._all_queued = all(each.queue is not None for each in self._shares)
        if self._shares and self._task is None:
            self._task = self._scope.spawn(self._work(), f"{self._settings.name}-fetchers")

    async def stop(self) -> None:
        """Stop all work and clear the queues. Each partition is reported once more, so that the exact end of the work
        is recorded."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._working:
            if self._stop_us:
                await self._tasks.sleep(self._stop_us)
            self._fetch(last=True)
        self._shares, self._working = (), False
        self._dead, self._chunks = {}, {}
        task.cancel("fetchers stop", origin=self)
        try:
            await task
        except TaskCancelled:
            return

    async def _work(self) -> None:
        await self._finder.find([each.partition for each in self._shares])
        self._working = True
        while True:
            self._fetch()
            await self._tasks.sleep(self._period_us)

    def _fetch(self, *, last: bool = False) -> None:
        """One chunk for every partition whose fetcher is alive and not blocked. `last`: the fetchers stop after it."""
        if self._read and self._all_queued:
            for each in self._shares:
                self._report.worked(each.partition, last=last)
            return
        held_up: dict[int, None] = {}
        for each in self._shares:
            fetcher = fetcher_id(each.partition, self._settings.fetchers)
            if fetcher in self._dead or fetcher in held_up:
                continue
            if each.queue is None:
                self._die(fetcher, each.partition)
            elif not self._read and self._chunks.get(each.queue, 0) >= self._settings.queue_limit:
                held_up[fetcher] = None
            else:
                self._report.worked(each.partition, last=last)
                self._chunks[each.queue] = 0 if self._read else self._chunks.get(each.queue, 0) + 1

    def _die(self, fetcher: int, each: TopicPartition) -> None:
        self._dead[fetcher] = None
        self._report.warned(
            f"[ConsumerFetcherThread-{self._settings.name}-{fetcher}], Error due to: "
            f"error processing data for partition [{each.topic},{each.partition}]: it has no queue"
        )


class LeaderFinder:
    """The part of 0.8.2's leader finder that uses ZooKeeper: it reads all brokers (1+B reads) before any fetcher can
    start. The lab has no brokers to ask for leaders yet."""

    def __init__(self, tasks: Kernel, view: GroupView, report: Report, *, backoff_ms: int) -> None:
        self._tasks = tasks
        self._view = view
        self._report = report
        self._backoff_us = backoff_ms * 1000

    async def find(self, partitions: Sequence[TopicPartition]) -> None:
        """Done when there are brokers. Tries without end, as in 0.8.2; `stop` cancels it."""
        while True:
            try:
                if await self._view.brokers():
                    return
            except Exception as error:  # as in 0.8.2: logged, and tried again
                names = ", ".join(f"[{each.topic},{each.partition}]" for each in partitions)
                self._report.warned(f"Failed to find leader for Set({names}): {error}")
            await self._tasks.sleep(self._backoff_us)
