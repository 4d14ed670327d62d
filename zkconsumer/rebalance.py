"""The synced rebalance of 0.8.2 (`ZKRebalancerListener`): attempts, back-off, release, claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rebalance_lab.assignors import Assignment, Assignor, TopicPartition
from rebalance_lab.history.events import Kind
from rebalance_lab.history.rebalances import AttemptFailure, RebalanceOutcome
from rebalance_lab.kernel import Future, Kernel, Lock
from rebalance_lab.wire.paths import BROKER_IDS
from rebalance_lab.wire.warnings import NO_BROKERS
from rebalance_lab.zkclient import ChildListener, ZkClient
from zkconsumer.claims import Claims, Plan, pairs
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.fetchers import Fetchers, LeaseSettings, Share
from zkconsumer.group_view import GroupView, Snapshot
from zkconsumer.ownership import Ownership
from zkconsumer.plants import Plant
from zkconsumer.report import Report
from zkconsumer.rules import RuleSet
from zkconsumer.streams import Streams
from zkconsumer.subscription import Subscription


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Kafka's settings of a member, and those of the lab: see `zkconsumer.member.Member`."""

    config: ConsumerConfig
    rules: RuleSet
    consumer_id: str
    subscription: Subscription
    assignor: Assignor
    lease: LeaseSettings
    plant: str | None


@dataclass(frozen=True, slots=True)
class Flags:
    """What a rebalance needs to know of its connector. `triggers`: how often its watches have fired."""

    shutting_down: Callable[[], bool]
    triggers: Callable[[], int]


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """Why an attempt failed. `conflicts`: what others own."""

    why: str
    reason: AttemptFailure
    conflicts: tuple[TopicPartition, ...] = ()


_SHUTDOWN = AttemptFailed("the member is shutting down", AttemptFailure.SHUTDOWN)


class Rebalancer:
    """One member's rebalances. `lock` serialises them; shutdown takes it too. `on_brokers` is notified of new brokers
    after a rebalance that found none. `failed` is done when a rebalance has failed."""

    def __init__(
        self,
        tasks: Kernel,
        settings: MemberSettings,
        *,
        client: ZkClient,
        view: GroupView,
        fetchers: Fetchers,
        ownership: Ownership,
        claims: Claims,
        streams: Streams,
        report: Report,
        on_brokers: ChildListener,
        flags: Flags,
    ) -> None:
        self.lock: Lock = tasks.lock(f"rebalance of {settings.consumer_id}")
        self.failed: Future[None] = Future("a failed rebalance")
        self._tasks = tasks
        self._settings = settings
        self._client = client
        self._view = view
        self._fetchers = fetchers
        self._ownership = ownership
        self._claims = claims
        self._streams = streams
        self._report = report
        self._on_brokers = on_brokers
        self._flags = flags
        self._triggers_seen = 0
        self._snapshot: Snapshot | None = None

    async def synced(self, by: str) -> None:
        """Rebalance until an attempt succeeds. `by`: what runs it (create, watcher, session, topics).

        Raises ConsumerRebalanceFailedException; the member stays registered then. The shutdown flag is checked only
        before the first attempt, so a shutdown waits for all remaining attempts (KAFKA-1848;
        Cures.stop_retrying_on_shutdown).
        """
        config = self._settings.config
        async with self.lock:
            if self._flags.shutting_down():
                return
            self._report.step(Kind.REBALANCE_BEGAN, by=by)
            attempts = 0
            for number in range(config.rebalance_max_retries):
                if config.lab.cures.stop_retrying_on_shutdown and self._flags.shutting_down():
                    self._ended(RebalanceOutcome.SHUTDOWN, attempts)
                    return
                attempts += 1
                if await self._try(number):
                    self._ended(RebalanceOutcome.OK, attempts)
                    return
                await self._stop_fetchers()
                await self._tasks.sleep(config.rebalance_backoff_ms * 1000)
            closes = self._flags.shutting_down()
            self._ended(RebalanceOutcome.SHUTDOWN if closes else RebalanceOutcome.FAILED, attempts)
        self.failed.set(None)
        raise ConsumerRebalanceFailedException(self._settings.consumer_id, config.rebalance_max_retries)

    def _ended(self, outcome: RebalanceOutcome, attempts: int) -> None:
        self._report.step(Kind.REBALANCE_ENDED, outcome=outcome, attempts=attempts)

    async def _try(self, number: int) -> bool:
        self._report.step(Kind.ATTEMPT_BEGAN, attempt=number)
        try:
            failed = await self._attempt()
        except Exception as error:  # as in 0.8.2: any throwable is a failed attempt
            failed = AttemptFailed(f"{type(error).__name__}: {error}", AttemptFailure.ERROR)
        if failed is None:
            return True
        detail: dict[str, object] = {
            "attempt": number,
            "why": failed.why,
            "reason": failed.reason,
            "conflicts": pairs(failed.conflicts),
        }
        if self._claims.held is not None:
            detail["holds"] = pairs(self._claims.won)
        self._report.step(Kind.ATTEMPT_FAILED, **detail)
        return False

    def _stale(self) -> bool:
        """Whether the member must release what it holds of a plan and read everything again (Z16's cures)."""
        cures = self._settings.config.lab.cures
        fired = self._flags.triggers() != self._triggers_seen
        return cures.release_before_retry or (cures.release_on_watch and fired)

    async def _attempt(self) -> AttemptFailed | None:
        """One attempt in Kafka's order. None on success, else why it failed."""
        if (held := self._claims.held) is not None:
            if not self._stale():
                return _SHUTDOWN if self._flags.shutting_down() else await self._take(held)
            await self._claims.let_go()
        await self._view.cluster()
        await self._view.threads(self._settings.consumer_id)  # not registered: fails here, with everything kept
        if not await self._view.brokers():
            self._report.warned(NO_BROKERS)
            await self._client.subscribe_child_changes(BROKER_IDS, self._on_brokers)
            return None
        await self._stop_fetchers()
        late = self._settings.plant == Plant.CLAIM_BEFORE_RELEASE
        if not late:
            await self._claims.release(self._ownership)
        self._triggers_seen = self._flags.triggers()
        snapshot = self._seen(await self._view.snapshot())
        assignment = self._decide(snapshot)
        offsets = await self._view.offsets(each for each, _ in assignment.owners)
        if self._flags.shutting_down():
            return _SHUTDOWN
        plan = Plan(assignment.owners, offsets)
        if late:
            await self._claims.take(plan)
            await self._claims.release(self._ownership)
        return await self._take(plan)

    async def _take(self, plan: Plan) -> AttemptFailed | None:
        conflicts = await self._claims.take(plan)
        if conflicts:
            names = ", ".join(f"{each.topic}/{each.partition}" for each in conflicts)
            return AttemptFailed(f"owned by others: {names}", AttemptFailure.CONFLICT, tuple(conflicts))
        owners = plan.owners[:-1] if self._settings.plant == Plant.LEAVE_ORPHAN else plan.owners
        self._ownership.swap(owners, plan.offsets)
        queue = self._streams.queue
        self._fetchers.start([Share(each, queue(each.topic, thread)) for each, thread in owners])
        return None

    async def _stop_fetchers(self) -> None:
        if self._settings.plant != Plant.WORK_THROUGH_REBALANCE:
            await self._fetchers.stop()

    def _seen(self, snapshot: Snapshot) -> Snapshot:
        former, self._snapshot = self._snapshot, snapshot
        return snapshot if former is None or self._settings.plant != Plant.DEAL_FROM_BEFORE else former

    def _decide(self, snapshot: Snapshot) -> Assignment:
        assignment = self._planted(self._settings.assignor(snapshot.context), snapshot)
        for warning in assignment.warnings:
            self._report.warned(warning)
        self._report.step(
            Kind.DECIDED,
            members=len(snapshot.members),
            members_zxid=snapshot.members_zxid,
            view=snapshot.digest,
            wants=pairs(each for each, _ in assignment.owners),
        )
        return assignment

    def _planted(self, assignment: Assignment, snapshot: Snapshot) -> Assignment:
        if self._settings.plant == Plant.NEVER_CLAIM_LAST:
            last = {TopicPartition(topic, found[-1]) for topic, found in snapshot.context.partitions.items() if found}
            return replace(assignment, owners=tuple(each for each in assignment.owners if each[0] not in last))
        return assignment
