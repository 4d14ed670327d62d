"""The controller's decisions: a stimulus comes in, instructions go out.

It touches no ZooKeeper and no network. Whoever runs it carries out the instructions in their order and hands back what
came of them (`StatesWritten`, `ReplicasDeleted`, `TopicRemoved`), also in that order.

As `kafka.controller.KafkaController` of Kafka 3.9.1 at failover, when brokers register or go, when topics are created,
grow and are deleted, when leaders ask for another ISR, and when brokers ask to shut down. Not built yet: states of
replicas, preferred leaders, reassignment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import singledispatchmethod

from controller.cluster import Cluster, LiveBroker, Topic
from controller.elections import Elections
from controller.isr_removals import IsrRemovals
from controller.isr_requests import IsrRequests
from controller.leader_election import ElectionOrder
from controller.partition_states import PartitionState
from controller.request_batch import RequestBatch
from controller.shutdowns import Shutdowns
from controller.stimuli import (
    BrokersCame,
    BrokersRead,
    DeletionsRead,
    DropDeletion,
    HandBack,
    Instruction,
    IsrAsked,
    LeadershipRefused,
    Loaded,
    Log,
    Purpose,
    RemoveTopic,
    ReplicasDeleted,
    ReplicasOffline,
    ReplicasStopped,
    SettingsChanged,
    ShutdownAsked,
    StatesWritten,
    Stimulus,
    TopicRemoved,
    TopicsRead,
    UncleanRead,
)
from rebalance_lab.assignors import TopicPartition


class ControllerMachine:
    """One reign of a controller. `epoch`: the controller's. `deletes_topics`: delete.topic.enable. `order`: which
    in-sync replica leads after a failure."""

    def __init__(
        self,
        controller_id: int,
        epoch: int,
        *,
        deletes_topics: bool = True,
        order: ElectionOrder = ElectionOrder.ASSIGNMENT,
    ) -> None:
        self.cluster = Cluster()
        self._controller_id = controller_id
        self._epoch = epoch
        self._deletes_topics = deletes_topics
        self._undeleted: dict[str, set[tuple[TopicPartition, int]]] = {}
        self._elections = Elections(self.cluster, epoch, self._batch, order)
        self._isr_removals = IsrRemovals(self.cluster, epoch, self._batch)
        self._isr_requests = IsrRequests(self.cluster)
        self._shutdowns = Shutdowns(self.cluster, self._elections, self._isr_removals, self._batch)

    @singledispatchmethod
    def handle(self, stimulus: Stimulus) -> list[Instruction]:
        """The instructions that follow from a stimulus, in the order to carry them out."""
        raise TypeError(f"no stimulus of a controller: {stimulus!r}")

    # -- failover ---------------------------------------------------------------------------

    @handle.register
    def _(self, loaded: Loaded) -> list[Instruction]:
        """Tell all brokers who is live, replicas who leads them, then elect for what has no leader."""
        cluster = self.cluster
        cluster.brokers = {each.broker_id: each for each in loaded.brokers}
        cluster.topics, cluster.stored = dict(loaded.topics), dict(loaded.stored)
        cluster.deleting = {each for each in loaded.deletions if self._may_delete(each)}
        batch = self._batch()
        batch.inform(cluster.brokers)
        out: list[Instruction] = list(batch.requests())
        for topic in cluster.topics:
            for partition in cluster.partitions(topic):
                cluster.states[partition] = self._state_found(partition)
        out += self._replicas_online(cluster.brokers)
        out += self._elections.elect()
        if self._isr_removals.any_dead():
            out.append(HandBack(ReplicasOffline()))
        dropped = sorted(each for each in loaded.deletions if each not in cluster.deleting)
        return [*out, *map(DropDeletion, dropped), *self._delete(sorted(cluster.deleting))]

    def _state_found(self, partition: TopicPartition) -> PartitionState:
        stored = self.cluster.stored.get(partition)
        if stored is None:
            return PartitionState.NEW
        return PartitionState.ONLINE if stored.leader_and_isr.leader in self.cluster.brokers else PartitionState.OFFLINE

    def _replicas_online(self, brokers: Collection[int]) -> list[Instruction]:
        """Send brokers the leadership of all their replicas. What has no live leader is sent once it has one: a broker
        that bounced would lead again in the epoch that its death has ended."""
        batch = self._batch()
        for partition in self.cluster.stored:
            if self.cluster.states[partition] is PartitionState.ONLINE:
                here = [each for each in self.cluster.replicas(partition) if each in brokers]
                if here:
                    batch.lead_or_follow(here, partition)
        return list(batch.requests())

    # -- brokers ----------------------------------------------------------------------------

    @handle.register
    def _(self, read: BrokersRead) -> list[Instruction]:
        """A broker whose epoch has grown between two looks died and came back: both are handled."""
        cluster = self.cluster
        now = {each.broker_id: each for each in read.brokers}
        dead = [each for each, known in cluster.brokers.items() if each not in now or now[each].epoch != known.epoch]
        came = [now[each] for each in now if each in dead or each not in cluster.brokers]
        if dead:
            cluster.brokers = {each: known for each, known in cluster.brokers.items() if each not in dead}
            cluster.shutting_down.difference_update(dead)
            return self._brokers_died(dead, came)
        return self.handle(BrokersCame(came)) if came else []

    def _brokers_died(self, dead: Collection[int], came: Sequence[LiveBroker]) -> list[Instruction]:
        """Tell the others first: a partition that has lost its only replica gets no leader to tell them of."""
        led = [each for each, stored in self.cluster.stored.items() if stored.leader_and_isr.leader in dead]
        self.cluster.change((each for each in led if each.topic not in self.cluster.deleting), PartitionState.OFFLINE)
        batch = self._batch()
        batch.inform(self.cluster.brokers, led)
        return [*batch.requests(), *self._elections.elect(), HandBack(ReplicasOffline(tuple(came)))]

    @handle.register
    def _(self, offline: ReplicasOffline) -> list[Instruction]:
        """Replicas on dead brokers leave the ISR; a dead leader is none any more."""
        if self._elections.change_known_states:
            return [HandBack(offline)]  # elections are under way, and change the same states
        out = self._isr_removals.begin(self.cluster.stored)
        return [*out, HandBack(BrokersCame(offline.came))] if offline.came else out

    @handle.register
    def _(self, came: BrokersCame) -> list[Instruction]:
        """Tell the others of them, them everything, then elect for what they may lead and go on with deletions."""
        self.cluster.brokers |= {each.broker_id: each for each in came.brokers}
        new = [each.broker_id for each in came.brokers]
        batch = self._batch()
        batch.inform([each for each in self.cluster.brokers if each not in new])
        out: list[Instruction] = list(batch.requests())
        batch = self._batch()
        batch.inform(new, self.cluster.stored)
        out += batch.requests()
        out += self._replicas_online(new) + self._elections.elect()
        for topic in sorted(self.cluster.deleting):
            out += self._stop_and_delete(topic, new)
        return out

    @handle.register
    def _(self, asked: ShutdownAsked) -> list[Instruction]:
        return self._shutdowns.begin(asked)

    @handle.register
    def _(self, done: ReplicasStopped) -> list[Instruction]:
        return self._shutdowns.stopped(done)

    # -- ISRs that leaders ask for ----------------------------------------------------------

    @handle.register
    def _(self, asked: IsrAsked) -> list[Instruction]:
        return self._isr_requests.begin(asked, self._elections)

    def _isr_written(self, result: StatesWritten) -> list[Instruction]:
        """Tell all brokers of the ISRs that were written, and answer the leaders."""
        answers = self._isr_requests.written(result)
        batch = self._batch()
        if result.written:
            batch.inform(self.cluster.brokers, result.written)
        return [*answers, *batch.requests()]

    # -- topics -----------------------------------------------------------------------------

    @handle.register
    def _(self, read: TopicsRead) -> list[Instruction]:
        """New topics and new partitions of old ones are elected a leader. Partitions are never removed from a topic."""
        cluster = self.cluster
        for gone in [each for each in cluster.topics if each not in read.topics]:
            self._undeleted.pop(gone, None)
            self._elections.forget(gone)
            cluster.forget(gone)
        new: list[TopicPartition] = []
        for name, topic in read.topics.items():
            known = cluster.topics.get(name)
            if known is None:
                cluster.topics[name] = topic
            elif name not in cluster.deleting:
                cluster.topics[name] = Topic({**topic.replicas, **known.replicas}, known.topic_id)
            new += [each for each in cluster.partitions(name) if each not in cluster.states]
        cluster.change(new, PartitionState.NEW)
        return self._elections.elect()

    # -- elections --------------------------------------------------------------------------

    @handle.register
    def _(self, read: UncleanRead) -> list[Instruction]:
        waiting = set(self._elections.waiting())
        return self._elections.elect([each for each in read.partitions if each in waiting], unclean=read.allowed)

    @handle.register
    def _(self, changed: SettingsChanged) -> list[Instruction]:
        """Partitions without a leader may have got one by `unclean.leader.election.enable`."""
        return self._elections.elect([each for each in self._elections.waiting() if each.topic in changed.topics])

    @handle.register
    def _(self, result: StatesWritten) -> list[Instruction]:
        match result.of:
            case Purpose.ELECTION:
                return self._elections.written(result)
            case Purpose.OFFLINE:
                return self._isr_removals.written(result)
            case Purpose.ISR:
                return self._isr_written(result)

    # -- deletion ---------------------------------------------------------------------------

    @handle.register
    def _(self, read: DeletionsRead) -> list[Instruction]:
        """A request for a topic that does not exist is dropped; every request is, if topics are not deleted here."""
        dropped = sorted(each for each in read.topics if not self._may_delete(each))
        new = sorted(set(read.topics) - set(dropped) - self.cluster.deleting)
        self.cluster.deleting.update(new)
        return [*map(DropDeletion, dropped), *self._delete(new)]

    def _may_delete(self, topic: str) -> bool:
        return self._deletes_topics and topic in self.cluster.topics

    def _delete(self, topics: Sequence[str]) -> list[Instruction]:
        """Tell all brokers that these topics go, and their replicas to delete what they hold."""
        if not topics:
            return []
        partitions = {topic: self.cluster.partitions(topic) for topic in topics}
        batch = self._batch()
        batch.inform(self.cluster.brokers, (each for topic in topics for each in partitions[topic]))
        out: list[Instruction] = list(batch.requests())
        for topic in topics:
            self.cluster.change(partitions[topic], PartitionState.OFFLINE)
            self._undeleted[topic] = {
                (each, broker) for each in partitions[topic] for broker in self.cluster.replicas(each)
            }
            out += self._stop_and_delete(topic, self.cluster.brokers) + self._removed_if_empty(topic)
        return out

    def _stop_and_delete(self, topic: str, brokers: Collection[int]) -> list[Instruction]:
        batch = self._batch()
        for partition, broker in sorted(self._undeleted[topic]):
            if broker in brokers:
                batch.stop([broker], partition, delete=True)
        return list(batch.requests())

    @handle.register
    def _(self, answer: ReplicasDeleted) -> list[Instruction]:
        """A topic is removed once every replica is deleted. What failed is tried again when its broker comes back."""
        out: list[Instruction] = []
        for partition in answer.partitions:
            undeleted = self._undeleted.get(partition.topic)
            if undeleted is None or partition in answer.failed:
                continue
            undeleted.discard((partition, answer.broker_id))
            out += self._removed_if_empty(partition.topic)
        return out

    def _removed_if_empty(self, topic: str) -> list[Instruction]:
        """Remove the topic if no replica of it is left, or it never had one."""
        if self._undeleted[topic]:
            return []
        del self._undeleted[topic]
        self.cluster.change(self.cluster.partitions(topic), PartitionState.NON_EXISTENT)
        return [RemoveTopic(topic)]

    @handle.register
    def _(self, removed: TopicRemoved) -> list[Instruction]:
        if removed.topic in self.cluster.topics:
            self.cluster.forget(removed.topic)
        return []

    # -- what brokers refuse ----------------------------------------------------------------

    @handle.register
    def _(self, refused: LeadershipRefused) -> list[Instruction]:
        """Report it. Nobody else is elected for that yet: the broker is told again when it registers anew."""
        return [
            Log(f"broker {refused.broker_id} does not take its role for {topic}-{partition}: {error.name}")
            for (topic, partition), error in sorted(refused.errors.items())
        ]

    def _batch(self) -> RequestBatch:
        return RequestBatch(self.cluster, self._controller_id, self._epoch)
