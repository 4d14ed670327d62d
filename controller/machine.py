"""The controller's decisions: a stimulus comes in, instructions go out.

It touches no ZooKeeper and no network. Whoever runs it carries out the instructions in their order and hands back what
came of them (`StatesWritten`, `ReplicasDeleted`, `TopicRemoved`), also in that order.

As `kafka.controller.KafkaController` of Kafka 3.9.1 at failover, when brokers register or go, when their disks fail,
when topics are created, grow and are deleted, when leaders ask for another ISR, when brokers ask to shut down, and when
other leaders or other replicas are asked for. Where it differs is in docs/broker.md, "How its controller differs".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, singledispatchmethod

from controller.cluster import Cluster, LiveBroker, Replica
from controller.deletions import Deletions
from controller.elections import Elections
from controller.isr_removals import IsrRemovals
from controller.isr_requests import IsrRequests
from controller.reassignments import Reassignments
from controller.request_batch import RequestBatch
from controller.settings import ControllerBug, ControllerSettings, Imbalance
from controller.shutdowns import Shutdowns
from controller.states import PartitionState, ReplicaState
from controller.stimuli import (
    AssignmentsWritten,
    BrokersCame,
    BrokersRead,
    DeletionsRead,
    DropReports,
    ElectionAsked,
    ElectionsEnded,
    HandBack,
    ImbalanceDue,
    Instruction,
    IsrAsked,
    IsrsReported,
    LeadershipAnswered,
    Loaded,
    Log,
    LogDirsFailed,
    MetadataDue,
    PreferredRead,
    Purpose,
    ReassignmentAsked,
    ReassignmentRead,
    ReassignmentsBegun,
    ReassignmentsGoOn,
    ReassignmentsListed,
    ReassignmentsResumed,
    ReplicasDeleted,
    ReplicasOffline,
    ReplicasStopped,
    SettingsChanged,
    ShutdownAsked,
    StatesRead,
    StatesWritten,
    Stimulus,
    TopicRemoved,
    TopicsRead,
    UncleanRead,
)
from controller.wanted_elections import WantedElections
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode


class ControllerMachine:
    """One reign of a controller. `epoch`: the controller's."""

    def __init__(self, controller_id: int, epoch: int, settings: ControllerSettings) -> None:
        self._broker_epochs = settings.broker_epochs
        self.cluster = Cluster()
        self._controller_id = controller_id
        self._epoch = epoch
        self._form = settings.form
        self._orders_first = settings.orders_before_metadata
        self._elects_anew = settings.bug is ControllerBug.ELECTS_ANEW
        self._elections = Elections(
            self.cluster, epoch, self._batch, settings.selection, batch_again=settings.elects_batch_again
        )
        self._isr_removals = IsrRemovals(
            self.cluster,
            epoch,
            self._batch,
            empties=settings.selection.empties_isrs,
            first_only=settings.bug is ControllerBug.SHRINKS_FIRST,
        )
        self._isr_requests = IsrRequests(self.cluster, read_back=settings.isr_read_back)
        self._shutdowns = Shutdowns(self.cluster, self._elections, self._isr_removals, self._batch)
        imbalance = settings.imbalance or Imbalance()
        self._wanted = WantedElections(self.cluster, self._elections, percentage=imbalance.percentage)
        self._reassignments = Reassignments(self.cluster, epoch, self._elections, self._batch, settings)
        self._deletions = Deletions(self.cluster, self._elections, self._batch, settings)

    @singledispatchmethod
    def handle(self, stimulus: Stimulus) -> list[Instruction]:
        """The instructions that follow from a stimulus, in the order to carry them out."""
        raise TypeError(f"no stimulus of a controller: {stimulus!r}")

    # -- failover ---------------------------------------------------------------------------

    @handle.register
    def _(self, loaded: Loaded) -> list[Instruction]:
        """Tell all brokers who is live, replicas who leads them, then elect for what has no leader. Then go on with
        what is being reassigned, and after it with requests that came meanwhile."""
        cluster = self.cluster
        cluster.brokers = {each.broker_id: each for each in loaded.brokers}
        cluster.topics = dict(loaded.topics)
        cluster.stored.update(loaded.stored)
        cluster.changed.update(dict.fromkeys(loaded.stored))
        ended = self._deletions.take_up(loaded.deletions, at_failover=True)
        batch = self._batch()
        if not self._orders_first:
            batch.inform(cluster.brokers)
        out: list[Instruction] = list(batch.requests())
        self._take_over()
        out += self._replicas_online(cluster.brokers)
        out += self._elections.elect()
        if self._isr_removals.any_dead():
            out.append(HandBack(ReplicasOffline()))
        if cluster.reassigning:
            out.append(HandBack(ReassignmentsResumed()))
        if loaded.wanted:
            out.append(HandBack(ReassignmentRead(loaded.wanted)))
        if self._orders_first:
            out.append(HandBack(MetadataDue()))
        return [*out, *ended, *self._deletions.go_on()]

    @handle.register
    def _(self, _due: MetadataDue) -> list[Instruction]:
        """Tell all brokers everything."""
        batch = self._batch()
        batch.inform(self.cluster.brokers, self.cluster.stored)
        return list(batch.requests())

    def _take_over(self) -> None:
        """The states of all partitions and replicas, as a controller finds them."""
        cluster, live = self.cluster, self.cluster.brokers
        new, online, offline = PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE

        @cache  # many partitions have their replicas on the same brokers
        def of_replicas(replicas: tuple[int, ...], lost: ReplicaState) -> dict[int, ReplicaState]:
            return {each: ReplicaState.ONLINE if each in live else lost for each in replicas}

        for name, topic in cluster.topics.items():
            lost = ReplicaState.DELETION_INELIGIBLE if name in cluster.deleting else ReplicaState.OFFLINE
            for partition in cluster.partitions(name):
                stored = cluster.stored.get(partition)
                if stored is None:
                    cluster.states[partition] = new
                else:
                    cluster.states[partition] = online if stored.leader_and_isr.leader in live else offline
                cluster.replica_states[partition] = of_replicas(topic.replicas[partition.partition], lost)
            cluster.reassigning |= {TopicPartition(name, each) for each in topic.reassigned}

    def _replicas_online(self, brokers: Collection[int]) -> list[Instruction]:
        """Send brokers the leadership of all their replicas. What has no live leader is sent once it has one: a broker
        that bounced would lead again in the epoch that its death has ended."""
        batch = self._batch()
        states, online = self.cluster.states, PartitionState.ONLINE
        batch.all_lead_or_follow(brokers, [each for each in self.cluster.stored if states[each] is online])
        return list(batch.requests())

    # -- brokers ----------------------------------------------------------------------------

    @handle.register
    def _(self, read: BrokersRead) -> list[Instruction]:
        """A broker whose epoch has grown between two looks died and came back: both are handled (KAFKA-1120)."""
        cluster = self.cluster
        now = {each.broker_id: each for each in read.brokers}
        unseen = [] if self._broker_epochs else self._taken_for_the_same(now)
        dead = [each for each, known in cluster.brokers.items() if each not in now or now[each].epoch != known.epoch]
        came = [now[each] for each in now if each in dead or each not in cluster.brokers]
        if dead:
            cluster.brokers = {each: known for each, known in cluster.brokers.items() if each not in dead}
            cluster.shutting_down.difference_update(dead)
            return unseen + self._brokers_died(dead, came)
        return unseen + (self.handle(BrokersCame(came)) if came else [])

    def _taken_for_the_same(self, now: Mapping[int, LiveBroker]) -> list[Instruction]:
        """Only ids count: of brokers that died and came back the controller learns where they listen, and tells
        everyone; it gives them no roles."""
        cluster = self.cluster
        bounced = {each: now[each] for each, known in cluster.brokers.items() if now.get(each, known) != known}
        cluster.brokers |= bounced
        batch = self._batch()
        if bounced:
            batch.inform(cluster.brokers)
        return list(batch.requests())

    def _brokers_died(self, dead: Collection[int], came: Sequence[LiveBroker]) -> list[Instruction]:
        for each in dead:
            self.cluster.failed.pop(each, None)
        led = [each for each, stored in self.cluster.stored.items() if stored.leader_and_isr.leader in dead]
        return self._leaders_lost(led, came)

    def _leaders_lost(self, led: Collection[TopicPartition], came: Sequence[LiveBroker] = ()) -> list[Instruction]:
        """Tell the others first: a partition that has lost its only replica gets no leader to tell them of."""
        self.cluster.change((each for each in led if not self.cluster.is_dying(each)), PartitionState.OFFLINE)
        batch = self._batch()
        batch.inform(self.cluster.brokers, led)
        return [*batch.requests(), *self._elections.elect(), HandBack(ReplicasOffline(tuple(came)))]

    @handle.register
    def _(self, offline: ReplicasOffline) -> list[Instruction]:
        """Replicas that are gone leave the ISR; a leader that is gone is none any more."""
        if self._elections.change_known_states:
            return [HandBack(offline)]  # elections are under way, and change the same states
        lost = [each for each in self._with_a_broker() if not self.cluster.is_online(each.broker_id, each.partition)]
        removed = self._reassignments.lost(lost)
        dying = [each for each in lost if self.cluster.is_dying(each.partition) and each not in removed]
        batch = self._batch()
        for each in lost:
            if each not in dying and each not in removed:
                self.cluster.change_replicas([each], ReplicaState.OFFLINE)
                batch.stop([each.broker_id], each.partition, delete=False)  # of a failed disk; of a dead broker in vain
        out = [*batch.requests(), *self._isr_removals.begin(self.cluster.stored), *self._deletions.lost(dying)]
        return [*out, HandBack(BrokersCame(offline.came))] if offline.came else out

    def _with_a_broker(self) -> list[Replica]:
        """Replicas whose brokers lead or follow with them, or have been asked to delete them."""
        states = ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.DELETION_STARTED
        return self.cluster.replicas_in(self.cluster.states, *states)

    @handle.register
    def _(self, came: BrokersCame) -> list[Instruction]:
        """Tell the others of them, them everything, then elect for what they may lead and go on with deletions."""
        self.cluster.brokers |= {each.broker_id: each for each in came.brokers}
        new = [each.broker_id for each in came.brokers]
        for each in new:
            self.cluster.failed.pop(each, None)  # an answer of its former life may have come after its death
        back = self.cluster.replicas_in(
            self.cluster.states, ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE
        )
        here = [
            each for each in back if each.broker_id in new and each.broker_id in self.cluster.replicas(each.partition)
        ]
        self.cluster.change_replicas(here, ReplicaState.ONLINE)
        batch = self._batch()
        batch.inform([each for each in self.cluster.brokers if each not in new])
        out: list[Instruction] = list(batch.requests())
        batch = self._batch()
        batch.inform(new, self.cluster.stored)
        out += [*batch.requests(), *self._replicas_online(new)]
        if self._elects_anew:
            self.cluster.change(self.cluster.in_state(PartitionState.ONLINE), PartitionState.OFFLINE)
        out += self._elections.elect()
        return [*out, *self._reassignments.came(new), *self._deletions.came(new)]

    @handle.register
    def _(self, asked: ShutdownAsked) -> list[Instruction]:
        return self._shutdowns.begin(asked)

    @handle.register
    def _(self, done: ReplicasStopped) -> list[Instruction]:
        return self._shutdowns.stopped(done)

    # -- ISRs that leaders ask for ----------------------------------------------------------

    @handle.register
    def _(self, asked: IsrAsked) -> list[Instruction]:
        return self._isr_requests.begin(asked)

    def _isr_written(self, result: StatesWritten) -> list[Instruction]:
        """Tell all brokers of the ISRs that were written, and answer the leaders."""
        answers = self._isr_requests.written(result)
        batch = self._batch()
        if result.written:
            batch.inform(self.cluster.brokers, result.written)
        return [*answers, *batch.requests(), *self._reassignments.isrs_changed(result.written)]

    @handle.register
    def _(self, reported: IsrsReported) -> list[Instruction]:
        """Tell all brokers of ISRs that leaders have written themselves (`processIsrChangeNotification`)."""
        known = self.cluster.stored
        newer = {each: found for each, found in reported.states.items() if each in known}
        newer = {each: found for each, found in newer.items() if found.version >= known[each].version}
        for each, found in newer.items():
            self.cluster.store(each, found)
        batch = self._batch()
        if newer:
            batch.inform(self.cluster.brokers, newer)
        changed = self._reassignments.isrs_changed(newer)
        return [*batch.requests(), *changed, DropReports(reported.reports)]

    # -- topics -----------------------------------------------------------------------------

    @handle.register
    def _(self, read: TopicsRead) -> list[Instruction]:
        """Elect leaders for new topics and for new partitions of known ones. A topic never loses partitions. Those that
        are added to one that is being deleted are taken out again, if the form does so (KAFKA-6612)."""
        cluster = self.cluster
        undone: list[Instruction] = []
        for gone in [each for each in cluster.topics if each not in read.topics]:
            self._forget(gone)
        new: list[TopicPartition] = []
        for name, topic in read.topics.items():
            known = cluster.topics.get(name)
            if known is None:
                cluster.topics[name] = topic
            elif name not in cluster.deleting:
                cluster.topics[name] = replace(known, replicas={**topic.replicas, **known.replicas})
            elif self._form.undoes_growth_in_deletion and not topic.replicas.keys() <= known.replicas.keys():
                undone.append(self._reassignments.written_as_known(name))
            new += [each for each in cluster.partitions(name) if each not in cluster.states]
        cluster.change(new, PartitionState.NEW)
        replicas = [Replica(each, broker) for each in new for broker in cluster.replicas(each)]
        cluster.change_replicas(replicas, ReplicaState.NEW)
        cluster.change_replicas(replicas, ReplicaState.ONLINE)  # as in the original: those of dead brokers, too
        return [*undone, *self._elections.elect()]

    # -- elections --------------------------------------------------------------------------

    @handle.register
    def _(self, read: UncleanRead) -> list[Instruction]:
        if read.of is Purpose.OFFLINE:
            return self._isr_removals.unclean_read(read)
        waiting = set(self._elections.waiting())
        return self._elections.elect([each for each in read.partitions if each in waiting], unclean=read.allowed)

    @handle.register
    def _(self, changed: SettingsChanged) -> list[Instruction]:
        """Partitions without a leader may have got one by `unclean.leader.election.enable`."""
        return self._elections.elect([each for each in self._elections.waiting() if each.topic in changed.topics])

    @handle.register
    def _(self, wanted: ElectionAsked | PreferredRead) -> list[Instruction]:
        return self._wanted.begin(wanted)

    @handle.register
    def _(self, done: ElectionsEnded) -> list[Instruction]:
        return self._wanted.ended(done)

    @handle.register
    def _(self, due: ImbalanceDue) -> list[Instruction]:
        return self._wanted.balance(due)

    @handle.register
    def _(self, result: StatesWritten) -> list[Instruction]:
        match result.of:
            case Purpose.ELECTION:
                return self._elections.written(result)
            case Purpose.OFFLINE:
                return self._isr_removals.written(result)
            case Purpose.ISR:
                return self._isr_written(result)
            case Purpose.REASSIGNMENT | Purpose.REMOVAL:
                return self._reassignments.written(result)

    # -- reassignment -----------------------------------------------------------------------

    @handle.register
    def _(self, asked: ReassignmentAsked | ReassignmentRead) -> list[Instruction]:
        return self._reassignments.begin(asked)

    @handle.register
    def _(self, done: ReassignmentsBegun) -> list[Instruction]:
        return self._reassignments.begun(done)

    @handle.register
    def _(self, asked: ReassignmentsListed) -> list[Instruction]:
        return self._reassignments.listed(asked)

    @handle.register
    def _(self, result: AssignmentsWritten) -> list[Instruction]:
        """Topics that are to be deleted are, once their partitions have been reassigned."""
        return self._reassignments.assigned(result) + self._deletions.go_on()

    @handle.register
    def _(self, found: StatesRead) -> list[Instruction]:
        return self._reassignments.read(found)

    @handle.register
    def _(self, due: ReassignmentsGoOn) -> list[Instruction]:
        return self._reassignments.go_on(due)

    @handle.register
    def _(self, _due: ReassignmentsResumed) -> list[Instruction]:
        return self._reassignments.resume()

    # -- deletion ---------------------------------------------------------------------------

    @handle.register
    def _(self, read: DeletionsRead) -> list[Instruction]:
        return self._deletions.take_up(read.topics) + self._deletions.go_on()

    @handle.register
    def _(self, answer: ReplicasDeleted) -> list[Instruction]:
        """Replicas are deleted with their topic, or because they are no longer assigned."""
        of_reassigned = self._reassignments.deleted(answer)
        return of_reassigned + self._deletions.answered(answer)

    @handle.register
    def _(self, removed: TopicRemoved) -> list[Instruction]:
        if removed.topic in self.cluster.topics:
            self._forget(removed.topic)
        return []

    def _forget(self, topic: str) -> None:
        self._deletions.forget(topic)
        self._elections.forget(topic)
        self._reassignments.forget(topic)
        self.cluster.forget(topic)

    # -- what brokers make of their roles ---------------------------------------------------

    @handle.register
    def _(self, answered: LeadershipAnswered) -> list[Instruction]:
        """A replica whose disk has failed is offline, until its broker takes a role with it or comes back. What is
        refused for another reason is reported, and sent again when the broker registers anew."""
        broker = answered.broker_id
        out: list[Instruction] = [
            Log(f"broker {broker} does not take its role for {topic}-{partition}: {error.name}")
            for (topic, partition), error in sorted(answered.errors.items())
        ]
        known = self.cluster.failed.get(broker, set())
        failed = {each for each, error in answered.errors.items() if error is ErrorCode.KAFKA_STORAGE_ERROR}
        failed &= set(self.cluster.states)
        self.cluster.failed[broker] = (known | failed).difference(answered.taken)
        if not self.cluster.failed[broker]:
            del self.cluster.failed[broker]
        return out + self._disk_failed(broker, failed - known) if failed - known else out

    @handle.register
    def _(self, failed: LogDirsFailed) -> list[Instruction]:
        """Ask brokers which of their replicas they still have: each is sent its role again, and refuses it with
        KAFKA_STORAGE_ERROR if its disk has failed (`onBrokerLogDirFailure`)."""
        cluster = self.cluster
        states = ReplicaState.ONLINE, ReplicaState.OFFLINE, ReplicaState.DELETION_INELIGIBLE
        known = [each for each in cluster.replicas_in(cluster.stored, *states) if each.broker_id in failed.brokers]
        batch = self._batch()
        for each in known:
            batch.lead_or_follow([each.broker_id], each.partition)
        cluster.change_replicas(
            (each for each in known if cluster.is_online(each.broker_id, each.partition)), ReplicaState.ONLINE
        )
        return [*batch.requests(), DropReports(failed.reports)]

    def _disk_failed(self, broker: int, failed: Collection[TopicPartition]) -> list[Instruction]:
        stored = self.cluster.stored
        return self._leaders_lost(
            [each for each in sorted(failed) if each in stored and stored[each].leader_and_isr.leader == broker]
        )

    def _batch(self) -> RequestBatch:
        return RequestBatch(self.cluster, self._controller_id, self._epoch, self._form)
