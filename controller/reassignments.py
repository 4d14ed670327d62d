"""Partitions that get other replicas (`KafkaController.onPartitionReassignment`, Kafka 3.9.1; KIP-455).

A tool asks for it by the znode `/admin/reassign_partitions`, a client by an AlterPartitionReassignments request. The
partition then has its old and its new replicas until all new ones are in sync. Only then another leader is elected, if
the old one does not stay, and the old replicas are removed. The topic's znode says which replicas are added and which
are removed, until the end; so a successor knows what is left to do. A later request takes the place of the one before.

Kafka carries out all steps for one partition before it begins with the next. Here each step is carried out for all
partitions that are asked for together, so that the znode of a topic is written twice, and not twice for each partition.
Kafka does not wait until brokers have deleted the replicas that are removed. So one stays on its disk if its broker is
not registered then, or if the controller dies before the request has gone out: the topic's znode does not name it any
more, and nobody asks again. With `awaits_deletion` the reassignment ends only once all are deleted; that of a broker
that is gone waits for its return, as the deletion of a topic does. Until then a client's request is refused, also one
to cancel, and a tool's waits.

A new replica on a dead broker is refused to a client, and waited for if a tool asks. Until the broker comes, a tool
refuses all other requests, because the first is still there. With `refuses_dead_targets` it is refused to a tool, too.

A new controller first goes on with what has begun, then with a tool's request. In Kafka it is the other way round: if
the old replicas are out of the ISR already, another request has the new ones deleted, which are the only ones in sync.
And leaders are elected while a partition is reassigned although its topic is to be deleted; in Kafka neither ends then.
One thing is as in Kafka: a request that is taken back or changed while only new replicas are in sync has these deleted,
and the partition is left without a leader and without its records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from controller.cluster import Assignment, Cluster, Replica, Stored, was_written
from controller.elections import Elections, Strategy
from controller.leader_election import LeaderAndIsr, without_replicas
from controller.refusals import Rejected
from controller.request_batch import RequestBatch
from controller.settings import ControllerSettings
from controller.states import ReassignmentStep, ReplicaState, check_reassignment
from controller.stimuli import (
    AnswerListing,
    AnswerReassignment,
    AssignmentsWritten,
    HandBack,
    Instruction,
    Log,
    Purpose,
    ReadStates,
    ReassignmentAsked,
    ReassignmentRead,
    ReassignmentsBegun,
    ReassignmentsGoOn,
    ReassignmentsListed,
    ReplicasDeleted,
    StatesRead,
    StatesWritten,
    TrimReassignment,
    WriteAssignments,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode

_UNKNOWN = Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
_NONE_IN_PROGRESS = Rejected(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")

#: One event takes a partition through these.
_BUSY = frozenset(ReassignmentStep) - {
    ReassignmentStep.NONE,
    ReassignmentStep.CATCHING_UP,
    ReassignmentStep.DELETING,
}


class Reassignments:
    """`epoch`: the controller's. `batch()`: an empty batch of requests."""

    def __init__(
        self,
        cluster: Cluster,
        epoch: int,
        elections: Elections,
        batch: Callable[[], RequestBatch],
        settings: ControllerSettings,
    ) -> None:
        self._awaits_deletion = settings.awaits_deletion
        self._refuses_dead = settings.refuses_dead_targets
        self._cluster = cluster
        self._epoch = epoch
        self._elections = elections
        self._batch = batch
        self._steps: dict[TopicPartition, ReassignmentStep] = {}
        self._gone: dict[TopicPartition, tuple[int, ...]] = {}  # the replicas that CANCELLING and REMOVING remove
        self._unended: dict[TopicPartition, Assignment] = {}  # what the topic's znode has from MOVING_LEADER to ENDING
        self._writing: set[TopicPartition] = set()
        self._later: dict[TopicPartition, tuple[int, ...]] = {}  # what a tool asks for during DELETING

    def step(self, partition: TopicPartition) -> ReassignmentStep:
        return self._steps.get(partition, ReassignmentStep.NONE)

    # -- requests ---------------------------------------------------------------------------

    def begin(self, asked: ReassignmentAsked | ReassignmentRead) -> list[Instruction]:
        """Begin with what can be reassigned. The rest is refused when that is written."""
        if self._elections.change_known_states or any(self.step(each) in _BUSY for each in asked.targets):
            return [HandBack(asked)]  # these change the same states
        rejected: dict[TopicPartition, Rejected] = {}
        wanted: dict[TopicPartition, Assignment] = {}
        for each, target in sorted(asked.targets.items()):
            found = self._wanted(each, target, validated=isinstance(asked, ReassignmentAsked))
            if self.step(each) is ReassignmentStep.DELETING and isinstance(asked, ReassignmentRead):
                self._later[each] = asked.targets[each]
            elif isinstance(found, Assignment):
                wanted[each] = found
            else:
                rejected[each] = found
        out: list[Instruction] = []
        if isinstance(asked, ReassignmentAsked) and wanted:
            out.append(TrimReassignment(dict.fromkeys(wanted)))  # the later request counts
        return [*out, *self._assign(wanted), HandBack(ReassignmentsBegun(asked, rejected))]

    def _wanted(
        self, partition: TopicPartition, target: tuple[int, ...] | None, *, validated: bool
    ) -> Assignment | Rejected:
        """Its assignment with both, or why it is refused. `validated`: check the target, as for a client. A tool
        has checked its own, but not whether brokers are live."""
        cluster = self._cluster
        known = cluster.assignment(partition) if partition in cluster.states else Assignment(())
        if self.step(partition) is ReassignmentStep.DELETING:
            return Rejected(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"old replicas of {_name(partition)} are being deleted; ask again later",
            )
        if target is None:
            return known.reassigned_to(known.origin) if known.is_reassigned else _NONE_IN_PROGRESS
        found = known.reassigned_to(target)
        why = _invalid(target) if validated or not target else None
        missing = [each for each in found.adding if each not in cluster.live]
        if why is None and (validated or self._refuses_dead) and missing:
            live = ", ".join(map(str, sorted(cluster.live)))
            why = f"brokers {', '.join(map(str, missing))} are not live; {live} are"
        if why is not None:
            return Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {_name(partition)}: {why}")
        return found if known.replicas and partition.topic not in cluster.deleting else _UNKNOWN

    def _assign(self, wanted: Mapping[TopicPartition, Assignment]) -> list[Instruction]:
        """U1. An assignment that is there already is not written again."""
        changed: dict[str, dict[int, Assignment]] = {}
        for each, assignment in wanted.items():
            if assignment != self._cluster.assignment(each):
                self._change(each, ReassignmentStep.ASSIGNING)
                changed.setdefault(each.topic, {})[each.partition] = assignment
        there = [each for each in wanted if self.step(each) is not ReassignmentStep.ASSIGNING]
        self._cluster.reassigning.update(there)
        return [*(self._write(topic, its) for topic, its in changed.items()), *self._look(there)]

    def begun(self, done: ReassignmentsBegun) -> list[Instruction]:
        """Answer the client; or say what is refused, and drop it from the znode."""
        asked, rejected = done.asked, dict(done.rejected)
        for each in asked.targets:
            if each not in rejected and each not in self._cluster.reassigning:
                rejected[each] = Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"topic {each.topic} has been deleted")
        if isinstance(asked, ReassignmentAsked):
            return [AnswerReassignment(asked, {each: rejected.get(each) for each in asked.targets})]
        if not rejected:
            return []
        told = [f"partition {_name(each)} is not reassigned: {why.message}" for each, why in sorted(rejected.items())]
        return [*map(Log, told), TrimReassignment(dict.fromkeys(rejected))]

    def listed(self, asked: ReassignmentsListed) -> list[Instruction]:
        """Answer the client with what the topics' znodes say."""
        cluster = self._cluster
        wanted = [
            each
            for each in sorted(cluster.reassigning if asked.partitions is None else asked.partitions)
            if each in cluster.states
        ]
        found = {each: self._unended.get(each) or cluster.assignment(each) for each in wanted}
        return [AnswerListing(asked, {each: its for each, its in found.items() if its.is_reassigned})]

    # -- what may let them go on ------------------------------------------------------------

    def resume(self) -> list[Instruction]:
        """Go on with what an earlier controller has begun."""
        left = [each for each in self._cluster.reassigning if self.step(each) is ReassignmentStep.NONE]
        return self._look(sorted(left))

    def came(self, brokers: Collection[int]) -> list[Instruction]:
        """Tell leaders again of new replicas on brokers that came, and delete their old ones."""
        waiting = self._waiting(self._cluster.reassigning)
        awaited = [each for each in waiting if set(self._cluster.assignment(each).target) & set(brokers)]
        return [*self._look(awaited), *self._delete_again(brokers)]

    def isrs_changed(self, partitions: Iterable[TopicPartition]) -> list[Instruction]:
        """See whether what was waited for is in sync."""
        waiting = self._waiting(partitions)
        return [ReadStates(waiting)] if waiting else []

    def _waiting(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [each for each in sorted(partitions) if self.step(each) is ReassignmentStep.CATCHING_UP]

    # -- steps ------------------------------------------------------------------------------

    def assigned(self, result: AssignmentsWritten) -> list[Instruction]:
        """U2: know what was written. At the end (B7, B8): forget the request, and tell all brokers."""
        partitions = [TopicPartition(result.topic, each) for each in result.changed]
        partitions = [each for each in partitions if each in self._cluster.states]
        if not result.written:
            return self._give_up(partitions, f"topic {result.topic} has been deleted")
        ended = [each for each in partitions if self.step(each) is ReassignmentStep.ENDING]
        return self._ended(ended) if ended else self._taken_up(partitions, result)

    def _taken_up(self, partitions: Collection[TopicPartition], result: AssignmentsWritten) -> list[Instruction]:
        cluster = self._cluster
        for each in partitions:
            after = result.changed[each.partition].replicas
            self._gone[each] = tuple(old for old in cluster.replicas(each) if old not in after)
        cluster.topics[result.topic] = cluster.topics[result.topic].with_assignments(result.changed)
        cluster.reassigning.update(partitions)
        unneeded = [each for each in partitions if self._gone[each]]
        for each in unneeded:
            self._change(each, ReassignmentStep.CANCELLING)
        return [*self._leave_isr(unneeded), *self._look([each for each in partitions if each not in unneeded])]

    def _look(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        for each in partitions:
            self._change(each, ReassignmentStep.LOOKING)
        return [ReadStates(tuple(partitions))] if partitions else []

    def read(self, found: StatesRead) -> list[Instruction]:
        """Wait for new replicas that are not in sync, or go on with the leader."""
        cluster = self._cluster
        awaited = ReassignmentStep.LOOKING, ReassignmentStep.CATCHING_UP
        late: list[TopicPartition] = []
        ready: list[TopicPartition] = []
        for each in [each for each in found.partitions if self.step(each) in awaited]:
            state = found.states.get(each)
            known = cluster.stored.get(each)
            if state is not None and (known is None or state.version >= known.version):
                cluster.store(each, state)
            in_sync = () if state is None else state.leader_and_isr.isr
            if state is not None and set(cluster.assignment(each).target) <= set(in_sync):
                ready.append(each)
            elif self.step(each) is ReassignmentStep.LOOKING:
                late.append(each)
        return [*self._catch_up(late), *self._move_leaders(ready)]

    def _catch_up(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        """A1: a leader epoch of its own for the assignment with both."""
        for each in partitions:
            self._change(each, ReassignmentStep.CATCHING_UP)
        led = [each for each in partitions if each in self._cluster.stored]
        leaderless = [each for each in partitions if each not in led]
        return [*self._raise_epochs(led), *(Log(f"partition {_name(each)} has no leader yet") for each in leaderless)]

    def _move_leaders(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        """B1 to B3: the new replicas are those that it has. A leader that stays gets a new epoch with them."""
        cluster = self._cluster
        staying: list[TopicPartition] = []
        leaving: list[TopicPartition] = []
        for each in partitions:
            self._change(each, ReassignmentStep.MOVING_LEADER)
            before, leader = cluster.assignment(each), cluster.stored[each].leader_and_isr.leader
            cluster.change_replicas((Replica(each, broker) for broker in before.adding), ReplicaState.ONLINE)
            self._gone[each], self._unended[each] = before.removing, before
            after = {each.partition: Assignment(before.target)}
            cluster.topics[each.topic] = cluster.topics[each.topic].with_assignments(after)
            stays = leader in before.target and cluster.is_online(leader, each)
            (staying if stays else leaving).append(each)
        elected = self._elections.elect(leaving, Strategy.REASSIGNMENT) if leaving else []
        return [*self._raise_epochs(staying), *elected, *self._go_on_later(partitions)]

    def go_on(self, due: ReassignmentsGoOn) -> list[Instruction]:
        """The next step, once all states are written."""
        if any(each in self._writing or each in self._elections for each in due.partitions):
            return [HandBack(due)]
        led = [each for each in due.partitions if self.step(each) is ReassignmentStep.MOVING_LEADER]
        for each in led:
            self._change(each, ReassignmentStep.REMOVING)
        removing = [each for each in due.partitions if each not in led and self.step(each) is ReassignmentStep.REMOVING]
        cancelled = [each for each in due.partitions if self.step(each) is ReassignmentStep.CANCELLING]
        stopped = self._delete([*removing, *cancelled])
        return [*self._leave_isr(led), *stopped, *self._end_or_wait(removing), *self._look(cancelled)]

    def _go_on_later(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        return [HandBack(ReassignmentsGoOn(tuple(partitions)))] if partitions else []

    def _leave_isr(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        """B4, U3: replicas that are removed leave the ISR. The original writes once for each of them."""
        for each in partitions:
            self._change_replicas(each, ReplicaState.OFFLINE)
        return [*self._shrink_isrs(partitions), *self._go_on_later(partitions)]

    def _delete(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        """B5, U3: have them stopped, then deleted."""
        stopped, deleted = self._batch(), self._batch()
        for each in partitions:
            stopped.stop(self._gone[each], each, delete=False)
            deleted.stop(self._gone[each], each, delete=True)
            self._change_replicas(each, ReplicaState.DELETION_STARTED)
            if self.step(each) is ReassignmentStep.CANCELLING or not self._awaits_deletion:
                self._change_replicas(each, ReplicaState.DELETION_SUCCESSFUL)
                self._drop_replicas(each)
        return [*stopped.requests(), *deleted.requests()]

    def _drop_replicas(self, partition: TopicPartition) -> None:
        self._change_replicas(partition, ReplicaState.NON_EXISTENT)
        self._cluster.drop_replicas(partition, self._gone.pop(partition))

    def _end_or_wait(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        waiting = [each for each in partitions if self._gone.get(each)]
        for each in waiting:
            self._change(each, ReassignmentStep.DELETING)
            dead = [broker for broker in self._gone[each] if broker not in self._cluster.brokers]
            self._fail_deletion(each, dead)
        return self._end([each for each in partitions if each not in waiting])

    def deleted(self, answer: ReplicasDeleted) -> list[Instruction]:
        """End those whose replicas are all deleted."""
        ready = []
        for each in answer.partitions:
            state = self._cluster.replica_states.get(each, {}).get(answer.broker_id)
            if self.step(each) is not ReassignmentStep.DELETING or state is not ReplicaState.DELETION_STARTED:
                continue
            if each in answer.failed:
                self._fail_deletion(each, [answer.broker_id])
                continue
            self._cluster.change_replicas([Replica(each, answer.broker_id)], ReplicaState.DELETION_SUCCESSFUL)
            states = self._cluster.replica_states[each]
            if all(states[broker] is ReplicaState.DELETION_SUCCESSFUL for broker in self._gone[each]):
                self._drop_replicas(each)
                ready.append(each)
        return self._end(ready)

    def lost(self, replicas: Iterable[Replica]) -> list[Replica]:
        """Those of these replicas that were asked to be deleted, and whose brokers are gone. They wait."""
        lost = [each for each in replicas if self.step(each.partition) is ReassignmentStep.DELETING]
        lost = [each for each in lost if each.broker_id in self._gone[each.partition]]
        for each in lost:
            self._fail_deletion(each.partition, [each.broker_id])
        return lost

    def _fail_deletion(self, partition: TopicPartition, brokers: Iterable[int]) -> None:
        self._cluster.change_replicas((Replica(partition, each) for each in brokers), ReplicaState.DELETION_INELIGIBLE)

    def _delete_again(self, brokers: Collection[int]) -> list[Instruction]:
        """Replicas that could not be deleted and whose brokers came."""
        batch = self._batch()
        for partition in [each for each, step in self._steps.items() if step is ReassignmentStep.DELETING]:
            states = self._cluster.replica_states[partition]
            failed = [each for each in self._gone[partition] if states[each] is ReplicaState.DELETION_INELIGIBLE]
            for broker in [each for each in failed if each in brokers]:
                replica = [Replica(partition, broker)]
                self._cluster.change_replicas(replica, ReplicaState.OFFLINE)
                self._cluster.change_replicas(replica, ReplicaState.DELETION_STARTED)
                batch.stop([broker], partition, delete=True)
        return list(batch.requests())

    def _end(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        """B6. A successor goes on until this is written, because it is the only place that has the old replicas."""
        by_topic: dict[str, dict[int, Assignment]] = {}
        for each in partitions:
            self._change(each, ReassignmentStep.ENDING)
            del self._unended[each]
            by_topic.setdefault(each.topic, {})[each.partition] = self._cluster.assignment(each)
        return [self._write(topic, its) for topic, its in by_topic.items()]

    def _ended(self, partitions: Collection[TopicPartition]) -> list[Instruction]:
        later = {each: self._later[each] for each in partitions if each in self._later}
        for each in partitions:
            self._forget(each)
        batch = self._batch()
        batch.inform(self._cluster.brokers, partitions)
        done = {each: self._cluster.replicas(each) for each in partitions}
        again = [HandBack(ReassignmentRead(later))] if later else []
        return [TrimReassignment(done), *batch.requests(), *again]

    # -- states -----------------------------------------------------------------------------

    def written(self, result: StatesWritten) -> list[Instruction]:
        """Tell the replicas of their new leader epoch, and write again where another had written in between."""
        self._writing.difference_update(result.written, result.conflicts)
        cluster, batch, written = self._cluster, self._batch(), dict(result.written)
        given_up: list[Instruction] = []
        again: list[TopicPartition] = []
        for each, found in result.conflicts.items():
            known = cluster.stored.get(each)
            if found is None or found.controller_epoch > self._epoch:
                given_up += self._give_up([each], _why_not_written(found))
            elif each in cluster.states:
                if result.of is Purpose.REMOVAL and known is not None and was_written(known, found, self._epoch):
                    written[each] = found
                cluster.store(each, found)
                again.append(each)  # nothing is written if nobody is left to be taken out
        for each, stored in written.items():
            if each in cluster.states:
                cluster.store(each, stored)
                self._tell(each, batch)
        once_more = self._raise_epochs(again) if result.of is Purpose.REASSIGNMENT else self._shrink_isrs(again)
        return [*batch.requests(), *given_up, *once_more]

    def _tell(self, partition: TopicPartition, batch: RequestBatch) -> None:
        """A1, A2, B3, B4: its leadership to all of its replicas; new ones may choose a disk."""
        assignment = self._cluster.assignment(partition)
        batch.lead_or_follow(assignment.origin, partition)
        batch.lead_or_follow(assignment.adding, partition, is_new=True)
        known = self._cluster.replica_states.get(partition, {})
        new = [Replica(partition, each) for each in assignment.adding if each not in known]
        self._cluster.change_replicas(new, ReplicaState.NEW)

    def _raise_epochs(self, partitions: Iterable[TopicPartition]) -> list[Instruction]:
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        for each in partitions:
            stored = self._cluster.stored[each]
            current = stored.leader_and_isr
            states[each] = replace(current, leader_epoch=current.leader_epoch + 1), stored.version
        return self._write_states(states, Purpose.REASSIGNMENT)

    def _shrink_isrs(self, partitions: Iterable[TopicPartition]) -> list[Instruction]:
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        for each in partitions:
            stored = self._cluster.stored.get(each)
            changed = None if stored is None else without_replicas(stored.leader_and_isr, self._gone[each])
            if stored is not None and changed is not None:
                states[each] = changed, stored.version
        return self._write_states(states, Purpose.REMOVAL)

    def _write_states(
        self, states: Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]], of: Purpose
    ) -> list[Instruction]:
        self._writing.update(states)
        return [WriteStates(states, of)] if states else []

    def written_as_known(self, topic: str) -> Instruction:
        """A topic's znode is to hold what the controller knows, and not what others have added."""
        return self._write(topic, {})

    def _write(self, topic: str, changed: Mapping[int, Assignment]) -> Instruction:
        """What is known of other partitions may be ahead of the znode: they are not at their end yet."""
        unended = {each.partition: its for each, its in self._unended.items() if each.topic == topic}
        return WriteAssignments(topic, self._cluster.topics[topic].with_assignments({**unended, **changed}), changed)

    def _give_up(self, partitions: Collection[TopicPartition], why: str) -> list[Instruction]:
        for each in partitions:
            self._forget(each)
        return [Log(f"the reassignment of {_name(each)} is given up: {why}") for each in partitions]

    def _forget(self, partition: TopicPartition) -> None:
        self._change(partition, ReassignmentStep.NONE)
        self._cluster.reassigning.discard(partition)
        self._drop(partition)

    def _drop(self, partition: TopicPartition) -> None:
        for its in (self._gone, self._unended, self._later):
            its.pop(partition, None)

    def forget(self, topic: str) -> None:
        """Its znodes are gone."""
        for each in [each for each in self._steps if each.topic == topic]:
            del self._steps[each]
            self._drop(each)

    def _change(self, partition: TopicPartition, target: ReassignmentStep) -> None:
        check_reassignment(partition, self.step(partition), target)
        self._steps[partition] = target
        if target is ReassignmentStep.NONE:
            del self._steps[partition]

    def _change_replicas(self, partition: TopicPartition, target: ReplicaState) -> None:
        self._cluster.change_replicas((Replica(partition, each) for each in self._gone[partition]), target)


def _invalid(target: tuple[int, ...]) -> str | None:
    if not target:
        return "no replica is asked for"
    if len(set(target)) != len(target):
        return f"a broker is asked for twice: {', '.join(map(str, target))}"
    if min(target) < 0:
        return f"a broker is negative: {', '.join(map(str, target))}"
    return None


def _why_not_written(found: Stored | None) -> str:
    if found is None:
        return "its state could not be written"
    return f"a controller of epoch {found.controller_epoch} has written its state"


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
