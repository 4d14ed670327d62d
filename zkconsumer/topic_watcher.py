"""The topic watcher of a wildcard (0.8.2: `ZookeeperTopicEventWatcher`).

Unlike all other triggers, its handler works on ZkClient's event task: when topics come or go, it initialises the member
again, and that rebalances there. Until this is done the member gets no other notification.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.paths import BROKER_TOPICS
from rebalance_lab.zkclient import ZkClient
from zkconsumer.report import Report


class TopicWatcher:
    """`allowed` filters a list of topics; `changed` is called when the result differs from the former one (`known` is
    the first). Only one call is active at a time."""

    def __init__(
        self,
        tasks: Kernel,
        client: ZkClient,
        report: Report,
        *,
        known: tuple[str, ...],
        allowed: Callable[[tuple[str, ...]], tuple[str, ...]],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._report = report
        self._known = known
        self._allowed = allowed
        self._changed = changed
        self._lock = tasks.lock("topic watcher")
        self._watching = False

    async def watch(self) -> None:
        """Make sure that /brokers/topics exists, and watch it: 3 reads. Only the first call has an effect."""
        if self._watching:
            return
        self._watching = True
        if await self._client.exists(BROKER_TOPICS) is None:
            await self._client.create_persistent(BROKER_TOPICS, parents=True)
        self._client.subscribe_state_changes(self)
        await self._client.subscribe_child_changes(BROKER_TOPICS, self)

    async def start(self) -> None:
        """Watch, and read the topics once (1 more read), to find what came since the first list."""
        await self.watch()
        await self.handle_child_change(BROKER_TOPICS, None)

    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        """Reads the topics again. All errors are logged, including a failed rebalance."""
        async with self._lock:
            try:
                topics = self._allowed((await self._client.children(BROKER_TOPICS)).names)
                before, self._known = self._known, topics
                if topics != before:
                    await self._changed()
            except Exception as error:  # as in 0.8.2
                self._report.warned(f"error in handling child changes: {error}")

    async def handle_new_session(self) -> None:
        """Set the watch again: 2 reads."""
        async with self._lock:
            await self._client.subscribe_child_changes(BROKER_TOPICS, self)
