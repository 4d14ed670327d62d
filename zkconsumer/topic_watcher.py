"""The topic watcher of a wildcard (0.8.2: `ZookeeperTopicEventWatcher`).

It has a handler of its own on ZkClient's event task, unlike all other triggers: when topics
come or go it initialises the member anew, and that rebalances right there. Until it is done the
member hears nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.paths import BROKER_TOPICS
from rebalance_lab.zkclient import ZkClient
from zkconsumer.report import Report


class TopicWatcher:
    """`allowed` filters a list of topics; `changed` is called when what it leaves is not what it
    left before. `known`: what it left first. One call at a time."""

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
        """Make sure that /brokers/topics is there, and listen to it: 3 reads. Once."""
        if self._watching:
            return
        self._watching = True
        if await self._client.exists(BROKER_TOPICS) is None:
            await self._client.create_persistent(BROKER_TOPICS, parents=True)
        self._client.subscribe_state_changes(self)
        await self._client.subscribe_child_changes(BROKER_TOPICS, self)

    async def start(self) -> None:
        """Watch, and take one look: 1 read more. What came since the first list is found here."""
        await self.watch()
        await self.handle_child_change(BROKER_TOPICS, None)

    async def handle_child_change(self, path: str, children: tuple[str, ...] | None) -> None:
        """Reads the topics once more. Whatever goes wrong is logged, a failed rebalance included."""
        async with self._lock:
            try:
                topics = self._allowed((await self._client.children(BROKER_TOPICS)).names)
                before, self._known = self._known, topics
                if topics != before:
                    await self._changed()
            except Exception as error:  # as in 0.8.2
                self._report.warned(f"error in handling child changes: {error}")

    async def handle_new_session(self) -> None:
        """Listen anew: 2 reads."""
        async with self._lock:
            await self._client.subscribe_child_changes(BROKER_TOPICS, self)
