"""Schedules of the explorer, carried out by the broker's own replicas, fetchers and handlers of requests.

Each of three brokers has a log on a disk of its own. After every step all three are what the model says.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from log_world import PARTITION, LogWorld, batch

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.apis import fetch, offset_for_leader_epoch
from rebalance_lab.broker.log.checkpoints import MetaProperties, write_offsets
from rebalance_lab.broker.log.files import replace_file
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.broker.log.names import HIGH_WATERMARKS
from rebalance_lab.broker.observe import unobserved
from rebalance_lab.broker.partition import Partition, ReplicaContext, ReplicaRole
from rebalance_lab.broker.replication.fetch_state import FetchState, first_state
from rebalance_lab.broker.replication.fetcher import FetchConfig, Following, ReplicaFetcher, Source
from rebalance_lab.broker.replication.isr_changes import IsrWritten
from rebalance_lab.broker.replication.leadership import Lag, Leadership
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion
from rebalance_lab.explore import model
from rebalance_lab.explore.model import Bounds, State, Step, StepKind
from rebalance_lab.explore.plants import RuleBug, planted
from rebalance_lab.explore.properties import Property
from rebalance_lab.explore.replica import Led, Replica, Role
from rebalance_lab.explore.search import explore
from rebalance_lab.kernel import RandomStream
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.fetch import FetchRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState
from rebalance_lab.wire.kafka.records import batches
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH
from rebalance_lab.world.network import Address
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedStorage

BROKERS = (0, 1, 2)
ROLES = {each: ReplicaRole[each.name] for each in Role}
EVERYTHING = 2**20  # bytes
ONE_BATCH = FetchConfig(
    protocol=ProtocolVersion.V2_7,
    wait_max_ms=0,
    min_bytes=0,
    max_bytes=1,
    response_max_bytes=1,
    backoff_ms=0,
    socket_timeout_ms=1,
)


class Fetcher(ReplicaFetcher):
    """Asks the replica of the leader itself. `lost`: the answer does not come."""

    replicas: Replicas
    lost = False

    async def _ask(self, request: Any, concerned: Any) -> Any:
        version = ProtocolVersion.V2_7.version_of(key_of(type(request)))
        handler = fetch if isinstance(request, FetchRequest) else offset_for_leader_epoch
        parts: Any = SimpleNamespace(tasks=self._tasks, replicas=SimpleNamespace(led=self._led))
        answer = await handler.handle(parts, Call.of(request, version, "follower"))
        return None if self.lost else answer

    def _led(self, _: TopicPartition, known_epoch: int = NO_LEADER_EPOCH) -> Partition:
        leading = self.replicas.partitions[self.source.leader]
        leading.check_leader(known_epoch)
        return leading


class Replicas:
    """The broker's side of a schedule."""

    def __init__(
        self, world: LogWorld, rules: ReplicationRules, *, forgets: bool, counts_diverging: bool = False
    ) -> None:
        self.world = world
        self.rules = rules
        self.forgets = forgets
        self.counts_diverging = counts_diverging
        self.partitions: dict[int, Partition] = {}
        self.fetchers: dict[int, tuple[Fetcher, Following]] = {}
        self.storages: dict[int, SimulatedStorage] = {}

    async def start(self, me: int, disk: SimulatedDisk) -> None:
        """A broker starts, and opens the log that is on its disk."""
        world = self.world
        storage = self.storages[me] = SimulatedStorage(world.kernel, world.kernel.process(f"broker {me}"), disk)
        names = RandomStream(0, f"broker {me}", "names")
        manager = LogManager(world.kernel, storage, world.clock, names, warn=world.warnings.append)
        await manager.start(MetaProperties(cluster_id="cluster", broker_id=me), lambda _: world.config)
        around = ReplicaContext(
            tasks=world.kernel,
            broker_id=me,
            rules=self.rules,
            lag=Lag(-1),
            may_be_in_sync=lambda _: True,
            change_isr=lambda _: None,
            forgets_followers=self.forgets,
            counts_diverging=self.counts_diverging,
        )
        self.partitions[me] = Partition(around, PARTITION, await manager.create(PARTITION, world.config))

    async def crash(self, me: int, checkpoint: int) -> None:
        """A broker is killed, and starts again. `checkpoint`: the high watermark that it wrote down last."""
        storage = self.storages[me]
        await replace_file(storage, HIGH_WATERMARKS, write_offsets({PARTITION: checkpoint}))
        storage.process.kill()
        self.fetchers.pop(me, None)
        await self.start(me, storage.disk)

    async def obey(self, me: int, leader: int, leader_epoch: int, isr: tuple[int, ...]) -> None:
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=0,
            leader=leader,
            leader_epoch=leader_epoch,
            isr=isr,
            partition_epoch=leader_epoch * 100,
            replicas=BROKERS,
        )
        replica = self.partitions[me]
        if leader == me:
            await replica.lead(state)
            return
        followed, has_epochs = replica.followed, replica.log.leader_epoch >= 0
        await replica.follow(state)
        fetching = first_state(self.rules, leader=leader, followed=followed, has_epochs=has_epochs)
        following = Following(replica, leader_epoch, fetching)
        fetcher = Fetcher(
            self.world.kernel,
            SimpleNamespace(),
            me,
            self.rules,
            ONE_BATCH,
            lambda _: None,
            unobserved,
            Source(leader, Address("leader", leader + 1), 1),
        )
        fetcher.replicas = self
        fetcher.add(following)
        self.fetchers[me] = fetcher, following
        if fetching is FetchState.TRUNCATING and not (self.rules.asks_for_epochs and has_epochs):
            await fetcher._truncate([following])

    async def ask(self, me: int, *, lost: bool) -> None:
        fetcher, following = self.fetchers[me]
        fetcher.lost = lost
        if following.state is FetchState.TRUNCATING:
            await fetcher._truncate([following])
        else:
            await fetcher._fetch([following])

    async def carry_out(self, step: Step, before: Replica, after: Replica, isr: tuple[int, ...]) -> None:
        replica = self.partitions[step.broker]
        if step.kind is StepKind.PRODUCE:
            await replica.append(batch(b"x"))
        elif step.kind is StepKind.OBEY:
            await self.obey(step.broker, step.other, step.number, isr)
        elif step.kind in (StepKind.EXCHANGE, StepKind.LOST_ANSWER):
            await self.ask(step.broker, lost=step.kind is StepKind.LOST_ANSWER)
        elif step.kind is StepKind.SHRINK:
            replica.leadership.proposed = step.isr
        elif step.kind is StepKind.ISR_ANSWER:
            leadership = replica.leadership
            written = IsrWritten(before.led.proposed, leadership.partition_epoch + 1)
            await replica.isr_answered(leadership, written)
        elif step.kind is StepKind.CRASH:
            await self.crash(step.broker, checkpoint=after.high_watermark)

    async def compare(self, replicas: list[Replica]) -> None:
        for me, replica in enumerate(replicas):
            partition = self.partitions[me]
            log = partition.log
            written = (await log.read(0, EVERYTHING)).data
            epochs = tuple(header.leader_epoch for _, header in batches(written))
            assert (epochs, log.high_watermark) == (replica.log, replica.high_watermark)
            assert log._epochs.entries == replica.epochs
            assert partition.role is ROLES[replica.role]
            if replica.role is not Role.IDLE:  # a broker that starts knows no epoch
                assert partition.leader_epoch == replica.leader_epoch
            if replica.role is Role.FOLLOWER:
                assert self.fetchers[me][1].state is replica.fetching
            if replica.led is not None:
                self._compare_leadership(partition.leadership, replica.led)

    @staticmethod
    def _compare_leadership(leadership: Leadership, led: Led) -> None:
        assert tuple(sorted(leadership.isr)) == led.isr
        assert leadership.start_offset == led.start_offset
        proposed = leadership.proposed
        assert (None if proposed is None else tuple(sorted(proposed))) == led.proposed
        ends = leadership.end_offsets
        assert all(end == led.ends[each] for each, end in ends.items() if each in leadership.maximal_isr)


Schedule = Sequence[tuple[Step, State]]


def drawn(partition: model.Partition, seed: int) -> Schedule:
    """A tenth of the steps are crashes, as long as there may be more, so that a crash finds something in the logs."""
    draw = Random(seed)
    state = partition.start
    schedule: list[tuple[Step, State]] = []
    for _ in range(60):
        steps = partition.steps(state)
        crashes = [each for each in steps if each[0].kind is StepKind.CRASH]
        chosen = crashes if draw.random() < 0.1 else [each for each in steps if each not in crashes]
        if not chosen:
            continue
        step, state = draw.choice(chosen)
        if any(each.answer is not None for each in partition.values(state)[0]):
            break  # out of range: the fetcher asks for the leader's end in the same step
        schedule.append((step, state))
    return schedule


def carried_out(
    partition: model.Partition, rules: ReplicationRules, schedule: Schedule, *, forgets: bool = False, **bugs: bool
) -> int:
    """Carry out a schedule; returns its length. `bugs`: planted in the brokers. Raises AssertionError where the broker
    does something else."""
    world = LogWorld()

    async def story() -> int:
        replicas = Replicas(world, rules, forgets=forgets, **bugs)
        for me in BROKERS:
            await replicas.start(me, SimulatedDisk(0, f"broker {me}"))
        state = partition.start
        for me in BROKERS:
            await replicas.obey(me, 0, 0, BROKERS)
        await replicas.compare(partition.values(state)[0])
        number = 0
        for step, after in schedule:
            before, control = partition.values(state)
            isr = next((each.isr for each in control.orders if each.leader_epoch == step.number), ())
            state = after
            now = partition.values(state)[0]
            await replicas.carry_out(step, before[step.broker], now[step.broker], isr)
            await replicas.compare(now)
            number += 1
        return number

    return world.run(story)


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("rules", ReplicationRules)
def test_the_broker_does_what_the_model_says(rules: ReplicationRules, forgets: bool) -> None:
    partition = model.Partition(rules, Bounds(records=4, epochs=5), forgets_if_missed=forgets)
    schedules = [drawn(partition, seed) for seed in range(8)]
    assert sum(carried_out(partition, rules, each, forgets=forgets) for each in schedules) > 150


@pytest.mark.parametrize("rules", ReplicationRules)
def test_a_broker_that_crashes_starts_again_as_the_model_says(rules: ReplicationRules) -> None:
    partition = model.Partition(rules, Bounds(records=4, epochs=5, crashes=3))
    schedules = [drawn(partition, seed) for seed in range(16)]
    crashes = [
        partition.values(after)[0][step.broker]
        for schedule in schedules
        for step, after in schedule
        if step.kind is StepKind.CRASH
    ]
    assert len([each for each in crashes if each.high_watermark > 0]) > 4
    assert sum(carried_out(partition, rules, each) for each in schedules) > 300


def shortest(partition: model.Partition, broken: Property) -> Schedule:
    return explore(partition, [broken]).counterexamples[broken].steps


@pytest.mark.parametrize("rules", ReplicationRules)
def test_it_loses_a_committed_record_as_the_explorer_found(rules: ReplicationRules) -> None:
    """All rules lose one if leaders keep what they knew. Earlier rules lose one even if leaders forget it."""
    forgets = rules is not ReplicationRules.KIP_320
    partition = model.Partition(rules, Bounds(records=1, epochs=3), forgets_if_missed=forgets)
    schedule = shortest(partition, Property.COMMITTED)
    assert carried_out(partition, rules, schedule, forgets=forgets) == len(schedule)


@pytest.mark.parametrize(
    "rules",
    [
        ReplicationRules.HIGH_WATERMARK,
        ReplicationRules.KIP_101,
        pytest.param(ReplicationRules.KIP_279, marks=pytest.mark.slow),
    ],
)
def test_its_logs_diverge_as_the_explorer_found(rules: ReplicationRules) -> None:
    partition = model.Partition(rules, Bounds(records=2, epochs=3), forgets_if_missed=True)
    schedule = shortest(partition, Property.AGREEMENT)
    assert carried_out(partition, rules, schedule, forgets=True) == len(schedule)


def test_a_broker_that_forgets_what_it_knew_does_not_lose_it() -> None:
    rules = ReplicationRules.KIP_320
    partition = model.Partition(rules, Bounds(records=1, epochs=3))
    schedule = shortest(partition, Property.COMMITTED)
    with pytest.raises(AssertionError):
        carried_out(partition, rules, schedule, forgets=True)


def test_it_loses_a_record_if_it_counts_fetches_although_the_logs_part() -> None:
    """KAFKA-13141, planted in the model and in the brokers."""
    rules = ReplicationRules.KIP_320
    partition = model.Partition(
        rules, Bounds(records=2, epochs=2), forgets_if_missed=True, **planted(RuleBug.COUNTS_DIVERGING)
    )
    schedule = shortest(partition, Property.COMMITTED)
    assert carried_out(partition, rules, schedule, forgets=True, counts_diverging=True) == len(schedule) == 7
    with pytest.raises(AssertionError):
        carried_out(partition, rules, schedule, forgets=True)


@pytest.mark.parametrize(
    "bug",
    [RuleBug.JOINS_EARLY, RuleBug.COUNTS_OLD_FETCHES, RuleBug.CUTS_AT_LEADER_END, RuleBug.COUNTS_DIVERGING],
)
def test_of_a_model_with_other_rules_it_does_not(bug: RuleBug) -> None:
    rules = ReplicationRules.KIP_320
    partition = model.Partition(rules, Bounds(records=4, epochs=5), **planted(bug))
    with pytest.raises(AssertionError):
        sum(carried_out(partition, rules, drawn(partition, seed)) for seed in range(40))
