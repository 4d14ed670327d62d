"""Schedules of the explorer, carried out by the broker's own replicas, fetchers and handlers of requests.

Three replicas are in one process, and each has a log on its disk. After every step all three are what the model says.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from log_world import LogWorld, batch

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.apis import fetch, offset_for_leader_epoch
from rebalance_lab.broker.log.log import PartitionLog, Surroundings
from rebalance_lab.broker.log.opening import LastLife, open_log
from rebalance_lab.broker.observe import unobserved
from rebalance_lab.broker.partition import Partition, ReplicaContext, ReplicaRole
from rebalance_lab.broker.replication.fetcher import FetchConfig, FetchState, Following, ReplicaFetcher, Source
from rebalance_lab.broker.replication.isr_changes import IsrWritten
from rebalance_lab.broker.replication.leadership import Lag
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion
from rebalance_lab.explore import model
from rebalance_lab.explore.model import Bounds, State, Step, StepKind
from rebalance_lab.explore.plants import RuleBug, planted
from rebalance_lab.explore.properties import Property
from rebalance_lab.explore.replica import Replica, Role
from rebalance_lab.explore.search import explore
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.fetch import FetchRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState
from rebalance_lab.wire.kafka.sentinels import NO_LEADER_EPOCH
from rebalance_lab.world.network import Address

BROKERS = (0, 1, 2)
ROLES = {Role.LEADER: ReplicaRole.LEADER, Role.FOLLOWER: ReplicaRole.FOLLOWER}
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

    leading: Partition
    lost = False

    async def _ask(self, request: Any, concerned: Any) -> Any:
        version = ProtocolVersion.V2_7.version_of(key_of(type(request)))
        handler = fetch if isinstance(request, FetchRequest) else offset_for_leader_epoch
        parts: Any = SimpleNamespace(tasks=self._tasks, replicas=SimpleNamespace(led=self._led))
        answer = await handler.handle(parts, Call.of(request, version, "follower"))
        return None if self.lost else answer

    def _led(self, _: TopicPartition, known_epoch: int = NO_LEADER_EPOCH) -> Partition:
        self.leading.check_leader(known_epoch)
        return self.leading


class Replicas:
    """The broker's side of a schedule."""

    def __init__(self, world: LogWorld, rules: ReplicationRules) -> None:
        self.world = world
        self.rules = rules
        self.partitions: list[Partition] = []
        self.fetchers: dict[int, tuple[Fetcher, Following]] = {}

    async def open(self) -> None:
        for broker in BROKERS:
            around = ReplicaContext(
                tasks=self.world.kernel,
                broker_id=broker,
                rules=self.rules,
                lag=Lag(-1),
                may_be_in_sync=lambda _: True,
                change_isr=lambda _: None,
            )
            partition = TopicPartition(f"b{broker}", 0)
            self.partitions.append(Partition(around, partition, await self._log(partition)))

    async def _log(self, partition: TopicPartition) -> PartitionLog:
        world = self.world
        await world.storage.make_folder(f"{partition.topic}-0")
        around = Surroundings(
            world.kernel, world.storage, world.clock, world.checkpoint, lambda _: None, lambda _: None, lambda _: None
        )
        return await open_log(around, partition, world.config, LastLife(False, 0, 0))

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
        same_leader = (replica.role, replica.leader) == (ReplicaRole.FOLLOWER, leader)
        await replica.follow(state)
        truncates = self.rules.truncates_first(has_epochs=replica.log.leader_epoch >= 0, same_leader=same_leader)
        following = Following(replica, leader_epoch, FetchState.TRUNCATING if truncates else FetchState.FETCHING)
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
        fetcher.leading = self.partitions[leader]
        fetcher.add(following)
        self.fetchers[me] = fetcher, following
        if truncates and not (self.rules.asks_for_epochs and replica.log.leader_epoch >= 0):
            await fetcher._truncate([following])

    async def ask(self, me: int, *, lost: bool) -> None:
        fetcher, following = self.fetchers[me]
        fetcher.lost = lost
        if following.state is FetchState.TRUNCATING:
            await fetcher._truncate([following])
        else:
            await fetcher._fetch([following])

    async def carry_out(self, step: Step, before: Replica, isr: tuple[int, ...]) -> None:
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

    def compare(self, replicas: list[Replica]) -> None:
        for partition, replica in zip(self.partitions, replicas, strict=True):
            log = partition.log
            epochs = tuple(log._epochs.at(offset) for offset in range(log.end_offset))
            assert (epochs, log.high_watermark) == (replica.log, replica.high_watermark)
            assert log._epochs.entries == replica.epochs
            assert (partition.role, partition.leader_epoch) == (ROLES[replica.role], replica.leader_epoch)
            if replica.led is not None:
                assert tuple(sorted(partition.leadership.isr)) == replica.led.isr
                proposed = partition.leadership.proposed
                assert (None if proposed is None else tuple(sorted(proposed))) == replica.led.proposed


Schedule = Iterator[tuple[Step, State]]


def drawn(partition: model.Partition, seed: int) -> Schedule:
    draw = Random(seed)
    state = partition.start
    for _ in range(60):
        steps = partition.steps(state)
        if not steps:
            return
        step, state = draw.choice(steps)
        if any(each.answer is not None for each in partition.values(state)[0]):
            return  # out of range: the fetcher asks for the leader's end in the same step
        yield step, state


def carried_out(partition: model.Partition, rules: ReplicationRules, schedule: Schedule) -> int:
    """Carry out a schedule; returns its length. Raises AssertionError where the broker does something else."""
    world = LogWorld()

    async def story() -> int:
        replicas = Replicas(world, rules)
        await replicas.open()
        state = partition.start
        for me in BROKERS:
            await replicas.obey(me, 0, 0, BROKERS)
        replicas.compare(partition.values(state)[0])
        number = 0
        for step, after in schedule:
            before, control = partition.values(state)
            isr = next((each.isr for each in control.orders if each.leader_epoch == step.number), ())
            await replicas.carry_out(step, before[step.broker], isr)
            state = after
            replicas.compare(partition.values(state)[0])
            number += 1
        return number

    return world.run(story)


@pytest.mark.parametrize("rules", ReplicationRules)
def test_the_broker_does_what_the_model_says(rules: ReplicationRules) -> None:
    partition = model.Partition(rules, Bounds(records=4, epochs=5))
    assert sum(carried_out(partition, rules, drawn(partition, seed)) for seed in range(8)) > 150


@pytest.mark.parametrize("rules", [ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_320])
def test_it_loses_a_committed_record_as_the_explorer_found(rules: ReplicationRules) -> None:
    partition = model.Partition(rules, Bounds(records=1, epochs=3))
    example = explore(partition, [Property.COMMITTED]).counterexamples[Property.COMMITTED]
    assert carried_out(partition, rules, iter(example.steps)) == len(example.steps)


@pytest.mark.parametrize("bug", [RuleBug.JOINS_EARLY, RuleBug.COUNTS_OLD_FETCHES, RuleBug.CUTS_AT_LEADER_END])
def test_of_a_model_with_other_rules_it_does_not(bug: RuleBug) -> None:
    rules = ReplicationRules.KIP_320
    partition = model.Partition(rules, Bounds(records=4, epochs=5), **planted(bug))
    with pytest.raises(AssertionError):
        sum(carried_out(partition, rules, drawn(partition, seed)) for seed in range(40))
