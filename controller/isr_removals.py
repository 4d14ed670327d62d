"""Replicas that are gone leave the ISR (`ZkReplicaStateMachine.removeReplicasFromIsr`, Kafka 3.9.1).

Gone are those whose brokers are not registered or whose disks have failed, and those of brokers that shut down, unless
they still lead. The last replica in sync stays, so that the partition remembers who has all its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from controller.cluster import Cluster, Stored
from controller.leader_election import LeaderAndIsr, without_replicas
from controller.request_batch import RequestBatch
from controller.stimuli import Instruction, Purpose, StatesWritten, WriteStates
from rebalance_lab.assignors import TopicPartition


class IsrRemovals:
    """`epoch`: the controller's. `batch()`: an empty batch of requests. `first_only`: plants a bug: only the ISRs of
    first partitions are written."""

    def __init__(
        self, cluster: Cluster, epoch: int, batch: Callable[[], RequestBatch], *, first_only: bool = False
    ) -> None:
        self._first_only = first_only
        self._cluster = cluster
        self._epoch = epoch
        self._batch = batch
        self._under_way = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is being written."""
        return self._under_way == 0

    def begin(self, partitions: Iterable[TopicPartition]) -> list[Instruction]:
        """Have the ISRs written without those who are gone."""
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        for each in sorted(partitions):
            if self._first_only and each.partition:
                continue
            stored = self._cluster.stored[each]
            changed = without_replicas(stored.leader_and_isr, self._gone(each, stored.leader_and_isr))
            if changed is not None and each.topic not in self._cluster.deleting:
                states[each] = changed, stored.version
        if not states:
            return []
        self._under_way += 1
        return [WriteStates(states, Purpose.OFFLINE)]

    def any_dead(self) -> bool:
        """Whether an ISR has a replica that is not online."""
        cluster = self._cluster
        registered = cluster.brokers.keys()
        return any(
            not registered >= set(stored.leader_and_isr.isr)
            or (cluster.failed and any(not cluster.is_online(each, partition) for each in stored.leader_and_isr.isr))
            for partition, stored in cluster.stored.items()
        )

    def _gone(self, partition: TopicPartition, state: LeaderAndIsr) -> list[int]:
        cluster = self._cluster
        return [
            each
            for each in state.isr
            if not cluster.is_online(each, partition) or (each in cluster.shutting_down and each != state.leader)
        ]

    def written(self, result: StatesWritten) -> list[Instruction]:
        """Tell the replicas that are left, and try again where another had written in between."""
        self._under_way -= 1
        batch = self._batch()
        for partition, stored in result.written.items():
            if partition in self._cluster.states:
                self._cluster.stored[partition] = stored
                batch.lead_or_follow(self._left(partition, stored), partition)
        out: list[Instruction] = list(batch.requests())
        again = []
        for partition, found in result.conflicts.items():
            if partition in self._cluster.states and found is not None and found.controller_epoch <= self._epoch:
                self._cluster.stored[partition] = found
                again.append(partition)
        return out + self.begin(again)

    def _left(self, partition: TopicPartition, stored: Stored) -> list[int]:
        """Its replicas on brokers that stay, and a leader that shuts down."""
        cluster = self._cluster
        told = {*cluster.may_lead(partition), stored.leader_and_isr.leader}
        return [each for each in cluster.replicas(partition) if each in told and cluster.is_online(each, partition)]
