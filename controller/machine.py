"""The controller's decisions: a stimulus comes in, instructions go out.

It touches no ZooKeeper and no network. Whoever runs it carries out the instructions in their order and hands back what
came of them (`StatesWritten`, `ReplicasDeleted`, `TopicRemoved`), also in that order.

As `kafka.controller.KafkaController` of Kafka 3.9.1 at failover, when brokers register or go, when topics are created,
grow and are deleted, and when leaders ask for another ISR. Not built yet: states of replicas, controlled shutdown,
preferred leaders, reassignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import singledispatchmethod

from controller.cluster import Cluster, LiveBroker, Stored, Topic
from controller.isr_requests import IsrRequests
from controller.leader_election import Election, LeaderAndIsr, NoLeader, first_leader, offline, without_replicas
from controller.partition_states import PartitionState
from controller.request_batch import RequestBatch
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
    ReadUnclean,
    RemoveTopic,
    ReplicasDeleted,
    ReplicasOffline,
    SettingsChanged,
    StatesWritten,
    Stimulus,
    TopicRemoved,
    TopicsRead,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition


class ControllerMachine:
    """One reign of a controller. `epoch`: the controller's. `deletes_topics`: delete.topic.enable."""

    def __init__(self, controller_id: int, epoch: int, *, deletes_topics: bool = True) -> None:
        self.cluster = Cluster()
        self._controller_id = controller_id
        self._epoch = epoch
        self._deletes_topics = deletes_topics
        self._elections: dict[TopicPartition, Election] = {}
        self._undeleted: dict[str, set[tuple[TopicPartition, int]]] = {}
        self._isr_requests = IsrRequests(self.cluster)

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
        out += self._elect()
        if dead := self._dead():
            out.append(HandBack(ReplicasOffline(tuple(sorted(dead)))))
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
            return self._brokers_died(dead, came)
        return self.handle(BrokersCame(came)) if came else []

    def _brokers_died(self, dead: Collection[int], came: Sequence[LiveBroker]) -> list[Instruction]:
        """Tell the others first: a partition that has lost its only replica gets no leader to tell them of."""
        led = [each for each, stored in self.cluster.stored.items() if stored.leader_and_isr.leader in dead]
        self.cluster.change((each for each in led if each.topic not in self.cluster.deleting), PartitionState.OFFLINE)
        batch = self._batch()
        batch.inform(self.cluster.brokers, led)
        offline = ReplicasOffline(tuple(sorted(dead)), tuple(came))
        return [*batch.requests(), *self._elect(), HandBack(offline)]

    def _dead(self) -> set[int]:
        """Brokers in an ISR that are not registered."""
        in_sync = {each for stored in self.cluster.stored.values() for each in stored.leader_and_isr.isr}
        return in_sync - set(self.cluster.brokers)

    @handle.register
    def _(self, offline: ReplicasOffline) -> list[Instruction]:
        """Replicas on dead brokers leave the ISR; a dead leader is none any more. The last one in sync stays."""
        if any(each in self._elections for each in self.cluster.stored):
            return [HandBack(offline)]  # elections are under way, and change the same states
        out = self._write_without(offline.brokers, self.cluster.stored)
        return [*out, HandBack(BrokersCame(offline.came))] if offline.came else out

    def _write_without(self, brokers: Collection[int], partitions: Iterable[TopicPartition]) -> list[Instruction]:
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        for each in sorted(partitions):
            stored = self.cluster.stored[each]
            gone = [broker for broker in brokers if broker not in self.cluster.brokers]
            changed = without_replicas(stored.leader_and_isr, gone)
            if changed is not None and each.topic not in self.cluster.deleting:
                states[each] = changed, stored.version
        return [WriteStates(states, Purpose.OFFLINE)] if states else []

    def _left_isrs(self, result: StatesWritten) -> list[Instruction]:
        """Tell the replicas that are left, and try again where another had written in between."""
        batch = self._batch()
        for partition, stored in result.written.items():
            if partition in self.cluster.states:
                self.cluster.stored[partition] = stored
                batch.lead_or_follow(self._live_replicas(partition), partition)
        out: list[Instruction] = list(batch.requests())
        again = []
        for partition, found in result.conflicts.items():
            if partition in self.cluster.states and found is not None and found.controller_epoch <= self._epoch:
                self.cluster.stored[partition] = found
                again.append(partition)
        return out + self._write_without(sorted(self._dead()), again)

    def _live_replicas(self, partition: TopicPartition) -> list[int]:
        return [each for each in self.cluster.replicas(partition) if each in self.cluster.brokers]

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
        out += self._replicas_online(new) + self._elect()
        for topic in sorted(self.cluster.deleting):
            out += self._stop_and_delete(topic, new)
        return out

    # -- topics -----------------------------------------------------------------------------

    @handle.register
    def _(self, read: TopicsRead) -> list[Instruction]:
        """New topics and new partitions of old ones are elected a leader. Partitions are never removed from a topic."""
        cluster = self.cluster
        for gone in [each for each in cluster.topics if each not in read.topics]:
            self._undeleted.pop(gone, None)
            self._elections = {each: found for each, found in self._elections.items() if each.topic != gone}
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
        return self._elect()

    # -- elections --------------------------------------------------------------------------

    def _elect(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: Collection[str] | None = None
    ) -> list[Instruction]:
        """Elect leaders for partitions; by default for all that have none and are not being deleted.

        `unclean`: topics whose settings allow unclean elections; None if they have not been read. They are read only if
        nothing else helps.
        """
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        out: list[Instruction] = []
        unread: list[TopicPartition] = []
        for each in sorted(self._waiting() if partitions is None else partitions):
            if each.topic in self.cluster.deleting:
                continue
            try:
                election = self._election(each, unclean_allowed=each.topic in (unclean or ()))
            except NoLeader as why:
                if unclean is None and self._could_be_unclean(each):
                    unread.append(each)
                else:
                    out.append(Log(f"partition {each.topic}-{each.partition} has no leader: {why}"))
                continue
            self._elections[each] = election
            stored = self.cluster.stored.get(each)
            states[each] = (election.leader_and_isr, None if stored is None else stored.version)
        if states:
            out.append(WriteStates(states))
        return [*out, ReadUnclean(unread)] if unread else out

    def _waiting(self) -> list[TopicPartition]:
        """Partitions without a leader that nobody is elected for now."""
        waiting = self.cluster.in_state(PartitionState.NEW, PartitionState.OFFLINE)
        return [each for each in waiting if each not in self._elections]

    def _could_be_unclean(self, partition: TopicPartition) -> bool:
        live = any(each in self.cluster.brokers for each in self.cluster.replicas(partition))
        return live and partition in self.cluster.stored

    def _election(self, partition: TopicPartition, *, unclean_allowed: bool) -> Election:
        """Raises NoLeader."""
        replicas, stored = self.cluster.replicas(partition), self.cluster.stored.get(partition)
        if stored is None:
            return first_leader(replicas, self.cluster.brokers)
        return offline(replicas, stored.leader_and_isr, self.cluster.brokers, unclean_allowed=unclean_allowed)

    @handle.register
    def _(self, read: UncleanRead) -> list[Instruction]:
        waiting = set(self._waiting())
        return self._elect([each for each in read.partitions if each in waiting], unclean=read.allowed)

    @handle.register
    def _(self, changed: SettingsChanged) -> list[Instruction]:
        """Partitions without a leader may have got one by `unclean.leader.election.enable`."""
        return self._elect([each for each in self._waiting() if each.topic in changed.topics])

    @handle.register
    def _(self, result: StatesWritten) -> list[Instruction]:
        """Tell the replicas what was written, and elect anew where another had written in between.

        A state of this controller's epoch that was to be created is our own: the reply to its creation was lost.
        """
        if result.of is Purpose.OFFLINE:
            return self._left_isrs(result)
        if result.of is Purpose.ISR:
            return self._isr_written(result)
        written = {each: stored for each, stored in result.written.items() if each in self._elections}
        again: list[TopicPartition] = []
        out: list[Instruction] = []
        for partition, found in result.conflicts.items():
            if partition not in self._elections:
                continue  # its topic has gone meanwhile
            is_new = self.cluster.states[partition] is PartitionState.NEW
            if found is not None and is_new and found.controller_epoch == self._epoch:
                written[partition] = found
            elif found is None or is_new or found.controller_epoch > self._epoch:
                del self._elections[partition]
                out.append(Log(_not_elected(partition, found)))
            else:
                self.cluster.stored[partition] = found
                del self._elections[partition]
                again.append(partition)
        return self._elected(written) + out + (self._elect(again) if again else [])

    def _elected(self, written: Mapping[TopicPartition, Stored]) -> list[Instruction]:
        batch = self._batch()
        for partition, stored in written.items():
            election = self._elections.pop(partition)
            is_new = self.cluster.states[partition] is PartitionState.NEW
            self.cluster.stored[partition] = stored
            self.cluster.change([partition], PartitionState.ONLINE)
            batch.lead_or_follow(self._receivers(partition, election), partition, is_new=is_new)
        return list(batch.requests())

    def _receivers(self, partition: TopicPartition, election: Election) -> list[int]:
        """Those that the rule names, and replicas whose brokers came while the state was written."""
        live = self._live_replicas(partition)
        return [each for each in self.cluster.replicas(partition) if each in election.receivers or each in live]

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


def _not_elected(partition: TopicPartition, found: Stored | None) -> str:
    name = f"{partition.topic}-{partition.partition}"
    if found is None:
        return f"partition {name} has no leader: its state could not be written"
    return (
        f"partition {name} has no leader from us: a controller of epoch {found.controller_epoch} has written its state"
    )
