"""Fetchers. Until there are brokers they are a lease: what they would read, they report."""

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
    """A partition to fetch, and the queue it goes to. None: there is none (F11)."""

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
    """The member's effect: WORKED on every partition each period, from start to stop. One
    report stands for one chunk that was fetched and put into its queue.

    It may outlive belief, as in 0.8: nothing but `stop` ends it. The first report comes at
    once and the last at the stop; one that fell due while the process stood still comes when it goes on.

    Two ways in which fetching ends unseen, while belief and registry show an owner. A partition
    without a queue kills the fetcher that gets its first chunk, and with it all partitions of
    that fetcher (F11). Where nobody reads the streams, because the create that would have
    returned them failed, each queue takes `queue_limit` chunks and then its fetcher stands still
    (F9a). Without brokers there is no leader to share fetchers by: a member has one per fetcher id.
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
        """The application has its streams: from now on somebody empties the queues."""
        self._read = True

    def start(self, shares: Sequence[Share]) -> None:
        """Work on these; on those too that are still worked on, if they were not stopped."""
        self._shares = tuple(sorted({each.partition: each for each in (*self._shares, *shares)}.values()))
        self._all_queued = all(each.queue is not None for each in self._shares)
        if self._shares and self._task is None:
            self._task = self._scope.spawn(self._work(), f"{self._settings.name}-fetchers")

    async def stop(self) -> None:
        """Done when nothing is worked on any more. What was worked on until now is reported once
        more, so that the effect's end is known exactly, not to a period. The queues are cleared."""
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
        """One chunk for every partition whose fetcher lives and is not held up. `last`: the
        fetchers stop with it."""
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
    """The pass of 0.8.2's leader finder that costs ZooKeeper something: it reads all brokers
    (1+B reads), before any fetcher can start. Asking them for leaders comes with brokers."""

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
