"""Replicas that are gone leave the ISR (`ZkReplicaStateMachine.removeReplicasFromIsr`, Kafka 3.9.1).

Gone are those whose brokers are not registered or whose disks have failed, and those of brokers that shut down, unless
they still lead. The last replica in sync stays, so that the partition remembers who has all its records; up to 1.0
only if its topic does not allow unclean elections.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from controller.cluster import Cluster, Stored, was_written
from controller.leader_election import LeaderAndIsr, without_replicas
from controller.request_batch import RequestBatch
from controller.stimuli import Instruction, Purpose, ReadUnclean, StatesWritten, UncleanRead, WriteStates
from rebalance_lab.assignors import TopicPartition


class IsrRemovals:
    """`epoch`: the controller's. `batch()`: an empty batch of requests. `empties`: the last replica goes, too, where
    unclean elections are allowed. `first_only`: plants a bug: only the ISRs of first partitions are written."""

    def __init__(
        self,
        cluster: Cluster,
        epoch: int,
        batch: Callable[[], RequestBatch],
        *,
        empties: bool = False,
        first_only: bool = False,
    ) -> None:
        self._empties = empties
        self._first_only = first_only
        self._cluster = cluster
        self._epoch = epoch
        self._batch = batch
        self._under_way = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is being read or written."""
        return self._under_way == 0

    def begin(
        self, partitions: Iterable[TopicPartition], *, unclean: Collection[str] | None = None
    ) -> list[Instruction]:
        """Have the ISRs written without those who are gone. `unclean`: topics whose settings allow unclean elections;
        None if they have not been read. They are read if an ISR may become empty."""
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        unread: list[TopicPartition] = []
        for each in sorted(partitions):
            if (self._first_only and each.partition) or self._cluster.is_dying(each):
                continue
            stored = self._cluster.stored[each]
            gone = self._gone(each, stored.leader_and_isr)
            if self._empties and unclean is None and gone and len(gone) == len(stored.leader_and_isr.isr):
                unread.append(each)
                continue
            may_be_empty = self._empties and each.topic in (unclean or ())
            changed = without_replicas(stored.leader_and_isr, gone, empty_isr_allowed=may_be_empty)
            if changed is not None:
                states[each] = changed, stored.version
        out: list[Instruction] = [WriteStates(states, Purpose.OFFLINE)] if states else []
        out += [ReadUnclean(unread, Purpose.OFFLINE)] if unread else []
        self._under_way += len(out)
        return out

    def unclean_read(self, read: UncleanRead) -> list[Instruction]:
        """Go on with those whose ISRs may become empty."""
        self._under_way -= 1
        return self.begin([each for each in read.partitions if each in self._cluster.stored], unclean=read.allowed)

    def any_dead(self) -> bool:
        """Whether an ISR has a broker that is not registered. A controller asks as it takes over, when it has not heard
        of failed disks yet."""
        isrs = {stored.leader_and_isr.isr for stored in self._cluster.stored.values()}  # a few, of many partitions
        return any(broker not in self._cluster.brokers for isr in isrs for broker in isr)

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
        written, again = dict(result.written), []
        for partition, found in result.conflicts.items():
            known = self._cluster.stored.get(partition)
            if known is None or found is None or found.controller_epoch > self._epoch:
                continue
            if was_written(known, found, self._epoch):
                written[partition] = found
            self._cluster.store(partition, found)
            again.append(partition)  # nothing is written if nobody is left to be taken out
        batch = self._batch()
        for partition, stored in written.items():
            if partition in self._cluster.states:
                self._cluster.store(partition, stored)
                batch.lead_or_follow(self._left(partition, stored), partition)
        return [*batch.requests(), *self.begin(again)]

    def _left(self, partition: TopicPartition, stored: Stored) -> list[int]:
        """Its replicas on brokers that stay, and a leader that shuts down."""
        cluster = self._cluster
        told = {*cluster.may_lead(partition), stored.leader_and_isr.leader}
        return [each for each in cluster.replicas(partition) if each in told and cluster.is_online(each, partition)]
