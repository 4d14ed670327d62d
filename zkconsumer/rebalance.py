"""The synced rebalance of 0.8.2 (facts 3.6, 3.7): attempts, back-off, release, claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rebalance_lab.assignors import Assignment, Assignor, TopicPartition
from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Kernel, Lock
from rebalance_lab.wire.paths import BROKER_IDS, owner_path
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.zkclient import ChildListener, ZkClient
from rebalance_lab.zkclient.helpers import create_ephemeral_expect_conflict
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.fetchers import Fetchers
from zkconsumer.group_view import GroupView, Snapshot
from zkconsumer.ownership import Ownership
from zkconsumer.plants import Plant
from zkconsumer.report import Report


@dataclass(frozen=True, slots=True)
class RebalanceSettings:
    """`max_retries` counts attempts; `backoff_ms` follows each failed one, the last included."""

    group: str
    consumer_id: str
    max_retries: int
    backoff_ms: int
    assignor: Assignor
    plant: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """Why an attempt failed. `reason`: conflict, error or shutdown; `conflicts`: what others own."""

    why: str
    reason: str
    conflicts: tuple[TopicPartition, ...] = ()


class Rebalancer:
    """One member's rebalances. `lock` keeps them apart; shutdown takes it too. `on_brokers` is
    told of brokers that come, after a rebalance that found none."""

    def __init__(
        self,
        tasks: Kernel,
        settings: RebalanceSettings,
        *,
        client: ZkClient,
        view: GroupView,
        fetchers: Fetchers,
        ownership: Ownership,
        report: Report,
        on_brokers: ChildListener,
        shutting_down: Callable[[], bool],
    ) -> None:
        self.lock: Lock = tasks.lock(f"rebalance of {settings.consumer_id}")
        self._tasks = tasks
        self._settings = settings
        self._client = client
        self._view = view
        self._fetchers = fetchers
        self._ownership = ownership
        self._report = report
        self._on_brokers = on_brokers
        self._shutting_down = shutting_down

    async def synced(self, by: str) -> None:
        """Rebalance until an attempt succeeds. `by`: who runs it (create, watcher, session).

        Raises ConsumerRebalanceFailedException; nothing is de-registered then. The shutdown
        flag is looked at once, before: a shutdown waits for all remaining attempts (KAFKA-1848).
        """
        settings = self._settings
        async with self.lock:
            if self._shutting_down():
                return
            self._report.step(Kind.REBALANCE_BEGAN, by=by)
            for number in range(settings.max_retries):
                if await self._try(number):
                    self._report.step(Kind.REBALANCE_ENDED, outcome="ok", attempts=number + 1)
                    return
                await self._stop_fetchers()
                await self._tasks.sleep(settings.backoff_ms * 1000)
            outcome = "shutdown" if self._shutting_down() else "failed"
            self._report.step(Kind.REBALANCE_ENDED, outcome=outcome, attempts=settings.max_retries)
        raise ConsumerRebalanceFailedException(settings.consumer_id, settings.max_retries)

    async def _try(self, number: int) -> bool:
        self._report.step(Kind.ATTEMPT_BEGAN, attempt=number)
        try:
            await self._view.cluster()
            failed = await self._attempt()
        except Exception as error:  # as in 0.8.2: any throwable is a failed attempt
            failed = AttemptFailed(f"{type(error).__name__}: {error}", "error")
        if failed is None:
            return True
        conflicts = [[each.topic, each.partition] for each in failed.conflicts]
        detail = {"why": failed.why, "reason": failed.reason, "conflicts": conflicts}
        self._report.step(Kind.ATTEMPT_FAILED, attempt=number, **detail)
        return False

    async def _attempt(self) -> AttemptFailed | None:
        """One attempt in Kafka's order. None on success, else why it failed."""
        settings = self._settings
        await self._view.threads(settings.consumer_id)  # not registered: fails here, with everything kept
        if not await self._view.brokers():
            self._report.warned("no brokers found when trying to rebalance.")
            await self._client.subscribe_child_changes(BROKER_IDS, self._on_brokers)
            return None
        await self._stop_fetchers()
        await self._release()
        snapshot = await self._view.snapshot()
        assignment = self._decide(snapshot)
        offsets = await self._view.offsets(each for each, _ in assignment.owners)
        if self._shutting_down():
            return AttemptFailed("the member is shutting down", "shutdown")
        conflicts = await self._claim(assignment)
        if conflicts:
            names = ", ".join(f"{each.topic}/{each.partition}" for each in conflicts)
            return AttemptFailed(f"owned by others: {names}", "conflict", tuple(conflicts))
        self._ownership.swap(assignment.owners, offsets)
        self._fetchers.start(each for each, _ in assignment.owners)
        return None

    async def _stop_fetchers(self) -> None:
        if self._settings.plant != Plant.WORK_THROUGH_REBALANCE:
            await self._fetchers.stop()

    async def _release(self) -> None:
        """Delete what the registry holds, blindly: neither data nor session is looked at (S4)."""
        self._ownership.disbelieve()
        for topic in self._ownership.topics:
            for each in self._ownership.of(topic):  # none, if a new session cleared them meanwhile
                await self._delete(each)
            self._ownership.forget(topic)

    async def _delete(self, each: TopicPartition) -> None:
        await self._client.delete(owner_path(self._settings.group, each.topic, each.partition))

    def _decide(self, snapshot: Snapshot) -> Assignment:
        assignment = self._planted(self._settings.assignor(snapshot.context), snapshot)
        for warning in assignment.warnings:
            self._report.warned(warning)
        self._report.step(
            Kind.DECIDED,
            members=len(snapshot.members),
            members_zxid=snapshot.members_zxid,
            view=snapshot.digest,
            wants=[[each.topic, each.partition] for each, _ in assignment.owners],
        )
        return assignment

    def _planted(self, assignment: Assignment, snapshot: Snapshot) -> Assignment:
        if self._settings.plant == Plant.NEVER_CLAIM_LAST:
            last = {TopicPartition(topic, found[-1]) for topic, found in snapshot.context.partitions.items() if found}
            return replace(assignment, owners=tuple(each for each in assignment.owners if each[0] not in last))
        return assignment

    async def _claim(self, assignment: Assignment) -> list[TopicPartition]:
        """Create every owner znode; *all* are tried. On a conflict those just created are
        deleted again, latest first. Returns the conflicts.

        Any other error escapes at once and leaves what was created behind, as in 0.8.2 (F7).
        """
        created: list[TopicPartition] = []
        conflicts: list[TopicPartition] = []
        for each, thread in assignment.owners:
            path = owner_path(self._settings.group, each.topic, each.partition)
            try:
                await create_ephemeral_expect_conflict(self._client, path, thread.encode())
            except NodeExists:
                conflicts.append(each)
            else:
                created.append(each)
        if self._settings.plant == Plant.IGNORE_CLAIM_CONFLICT:
            return []
        if conflicts:
            for each in reversed(created):
                await self._delete(each)
        return conflicts
