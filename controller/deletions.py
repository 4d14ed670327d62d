"""Topics that are being deleted (`TopicDeletionManager`, Kafka 3.9.1).

A deletion waits for reassignments of its partitions, for brokers that are gone and for replicas that could not be
deleted, and begins anew for what is left when such a broker comes back. Unlike the original, replicas that are deleted
do not leave the ISR in ZooKeeper first: the state znode is deleted with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from controller.cluster import Cluster, Replica
from controller.elections import Elections
from controller.request_batch import RequestBatch
from controller.settings import ControllerSettings
from controller.states import PartitionState, ReplicaState
from controller.stimuli import DropDeletion, Instruction, Log, RemoveTopic, ReplicasDeleted
from rebalance_lab.assignors import TopicPartition


class Deletions:
    """`batch()`: an empty batch of requests."""

    def __init__(
        self,
        cluster: Cluster,
        elections: Elections,
        batch: Callable[[], RequestBatch],
        settings: ControllerSettings,
    ) -> None:
        self._enabled = settings.deletes_topics
        self._form = settings.form
        self._cluster = cluster
        self._elections = elections
        self._batch = batch
        self._waiting: set[str] = set()
        self._removing: set[str] = set()

    def take_up(self, topics: Collection[str], *, at_failover: bool = False) -> list[Instruction]:
        """Take up requests to delete topics. Requests for topics that do not exist are dropped, and all if topics are
        not deleted here. But at failover a topic that does not exist may have settings left: its last controller died
        after it had removed the rest. `go_on` begins with the others, a new controller only once the brokers of all
        their replicas are registered (`KafkaController.fetchTopicDeletionsInProgress`)."""
        cluster = self._cluster
        wanted = {each for each in topics if self._enabled and each in cluster.topics}
        cluster.deleting |= wanted
        gone = sorted(set(topics) - wanted)
        if not self._enabled or not at_failover:
            return [DropDeletion(each) for each in gone]
        self._waiting |= {each for each in wanted if not cluster.brokers.keys() >= cluster.brokers_of(each)}
        return [RemoveTopic(each) for each in gone if self._form.ends_deletions_without_topic]

    def came(self, brokers: Collection[int]) -> list[Instruction]:
        """Go on with topics that have replicas on brokers that came."""
        cluster = self._cluster
        for topic in cluster.deleting:
            if not cluster.brokers_of(topic).isdisjoint(brokers):
                self._waiting.discard(topic)
        return self.go_on()

    def lost(self, replicas: Iterable[Replica]) -> list[Instruction]:
        """Replicas of topics that are being deleted are offline: their topics wait."""
        lost = list(replicas)
        cluster = self._cluster
        for each in lost:
            if cluster.replica_states[each.partition][each.broker_id] in (ReplicaState.NEW, ReplicaState.ONLINE):
                cluster.change_replicas([each], ReplicaState.OFFLINE)
        return self._failed(lost)

    def answered(self, answer: ReplicasDeleted) -> list[Instruction]:
        """A topic is removed once every replica is deleted."""
        states = self._cluster.replica_states
        started = [
            Replica(each, answer.broker_id)
            for each in answer.partitions
            if each.topic in self._cluster.deleting
            and each not in self._cluster.reassigning
            and states.get(each, {}).get(answer.broker_id) is ReplicaState.DELETION_STARTED
        ]
        failed = [each for each in started if each.partition in answer.failed]
        deleted = [each for each in started if each.partition not in answer.failed]
        self._cluster.change_replicas(deleted, ReplicaState.DELETION_SUCCESSFUL)
        return self._failed(failed)

    def _failed(self, replicas: Collection[Replica]) -> list[Instruction]:
        self._cluster.change_replicas(replicas, ReplicaState.DELETION_INELIGIBLE)
        self._waiting |= {each.partition.topic for each in replicas}
        return self.go_on()

    def forget(self, topic: str) -> None:
        """Its znodes are gone."""
        self._waiting.discard(topic)
        self._removing.discard(topic)

    def go_on(self) -> list[Instruction]:
        """Begin with what has been taken up, begin again where nothing is under way, and remove what is deleted."""
        return [each for topic in sorted(self._cluster.deleting - self._removing) for each in self._go_on(topic)]

    def _go_on(self, topic: str) -> list[Instruction]:
        cluster = self._cluster
        partitions = cluster.partitions(topic)
        if not cluster.reassigning.isdisjoint(partitions):
            return []  # it goes on once they are reassigned
        deleted = cluster.replicas_in(partitions, ReplicaState.DELETION_SUCCESSFUL)
        if len(deleted) == sum(len(cluster.replicas(each)) for each in partitions):
            self._end(partitions)
            cluster.change_replicas(deleted, ReplicaState.NON_EXISTENT)
            self._removing.add(topic)
            return [RemoveTopic(topic)]
        if cluster.replicas_in(partitions, ReplicaState.DELETION_STARTED):
            return []  # their brokers will answer, or go
        failed = cluster.replicas_in(partitions, ReplicaState.DELETION_INELIGIBLE)
        cluster.change_replicas(failed, ReplicaState.OFFLINE)
        return [] if topic in self._waiting else self._begin(topic)

    def _begin(self, topic: str) -> list[Instruction]:
        """Tell all brokers that the topic goes, and those that are live to delete their replicas."""
        cluster = self._cluster
        partitions = cluster.partitions(topic)
        self._elections.forget(topic)
        self._end(partitions)
        batch = self._batch()
        batch.inform(cluster.brokers, partitions)
        out: list[Instruction] = list(batch.requests())
        left, stuck = self._left(partitions)
        alive = [each for each in left if each.broker_id in cluster.may_lead(each.partition)]
        cluster.change_replicas(left, ReplicaState.OFFLINE)
        cluster.change_replicas(alive, ReplicaState.DELETION_STARTED)
        dead = [each for each in left if each not in alive]
        cluster.change_replicas(dead, ReplicaState.DELETION_INELIGIBLE)
        if dead:
            self._waiting.add(topic)
        batch = self._batch()
        for partition, broker in sorted(alive):
            batch.stop([broker], partition, delete=True)
        return [*out, *batch.requests(), *stuck]

    def _left(self, partitions: Collection[TopicPartition]) -> tuple[list[Replica], list[Instruction]]:
        """The replicas that can go offline before they are deleted; and what to say of the others. Up to 1.1 those of
        a partition without a state cannot, so that the topic is never deleted (KAFKA-6650)."""
        found = self._cluster.replicas_in(partitions, ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE)
        stateless = {each.partition for each in found if each.partition not in self._cluster.stored}
        if self._form.deletes_stateless or not stateless:
            return found, []
        told = [
            Log(f"partition {topic}-{number} is to be deleted, and has no state: its topic stays")
            for topic, number in sorted(stateless)
        ]
        return [each for each in found if each.partition not in stateless], [*told]

    def _end(self, partitions: Iterable[TopicPartition]) -> None:
        """The partitions have no leader any more."""
        left = [each for each in partitions if self._cluster.states[each] is not PartitionState.NON_EXISTENT]
        self._cluster.change(left, PartitionState.OFFLINE)
        self._cluster.change(left, PartitionState.NON_EXISTENT)
