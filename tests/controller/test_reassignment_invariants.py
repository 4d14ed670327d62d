"""Whatever happens to a partition that gets other replicas, in whatever order, it has them in the end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from controller_machine import EPOCH, T0, broker, machine
from hypothesis import given
from hypothesis import strategies as st

from controller.cluster import LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.request_batch import Send
from controller.states import ReassignmentStep, ReplicaState
from controller.stimuli import (
    AnswerReassignment,
    AssignmentsWritten,
    BrokersRead,
    DeletionsRead,
    HandBack,
    Instruction,
    IsrAsked,
    IsrWanted,
    Loaded,
    ReadStates,
    ReadUnclean,
    ReassignmentAsked,
    ReassignmentRead,
    RemoveTopic,
    ReplicasDeleted,
    StatesRead,
    StatesWritten,
    Stimulus,
    TrimReassignment,
    UncleanRead,
    WriteAssignments,
    WriteStates,
)
from rebalance_lab.wire.cluster import NO_LEADER
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest

BROKERS = (1, 2, 3, 4)
TARGETS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)

#: Which brokers are registered, and how many lives later; what is asked for, by whom; which ISR the leader asks for;
#: what a broker answers that was asked to delete; another controller is elected.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("brokers"), st.dictionaries(st.sampled_from(BROKERS), st.integers(0, 1), max_size=4)),
        st.tuples(st.just("tool"), TARGETS),
        st.tuples(st.just("client"), st.one_of(st.none(), TARGETS)),
        st.tuples(st.just("isr"), st.sets(st.sampled_from(BROKERS), min_size=1)),
        st.tuples(st.just("deleted"), st.booleans()),
        st.tuples(st.just("successor"), st.none()),
    ),
    max_size=14,
)


@dataclass
class _World:
    """ZooKeeper, and brokers that are asked to delete. `others_write`: whether another writes the state first.
    `is_lost`: as in Kafka, a later request had all replicas in sync deleted."""

    awaits_deletion: bool
    others_write: list[bool]
    topic: Topic = field(default_factory=lambda: Topic({0: (1, 2)}))
    stored: Stored = field(default_factory=lambda: Stored(LeaderAndIsr(1, 5, (1, 2)), EPOCH, 3))
    wanted: dict[object, tuple[int, ...]] = field(default_factory=dict)
    lives: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 1))
    deleting: deque[int] = field(default_factory=deque)
    is_lost: bool = False
    is_removed: bool = False

    def __post_init__(self) -> None:
        self.elect()

    def elect(self) -> None:
        """Another controller, which finds what is there."""
        self.it = machine(awaits_deletion=self.awaits_deletion)
        self.deleting.clear()
        loaded = Loaded(
            self.registered(), {"t": self.topic}, {T0: self.stored}, wanted={T0: self.wanted[T0]} if self.wanted else {}
        )
        self.carry_out(loaded)

    def registered(self) -> list[LiveBroker]:
        return [broker(each, 100 * life + each) for each, life in sorted(self.lives.items())]

    def carry_out(self, stimulus: Stimulus) -> list[Instruction]:
        waiting, done = deque([stimulus]), list[Instruction]()
        for _ in range(300):
            if not waiting:
                return done
            for each in self.it.handle(waiting.popleft()):
                done.append(each)
                found = self._carry_out(each)
                if found is not None:
                    waiting.append(found)
        raise AssertionError(f"it does not come to an end: {done[-3:]}")

    def _carry_out(self, instruction: Instruction) -> Stimulus | None:
        match instruction:
            case HandBack():
                return instruction.stimulus
            case ReadUnclean():
                return UncleanRead(instruction.partitions, ())
            case ReadStates():
                return StatesRead(instruction.partitions, {T0: self.stored})
            case WriteStates():
                return self._write(instruction)
            case WriteAssignments():
                self.topic = instruction.after
                return AssignmentsWritten(instruction.topic, instruction.changed)
            case RemoveTopic():
                self.is_removed = True
            case TrimReassignment():
                if self.wanted and instruction.dropped.get(T0, ()) in (None, self.wanted[T0]):
                    self.wanted.clear()
            case Send(broker_id=to, request=StopReplicaRequest() as stop):
                if any(each.delete_partition for topic in stop.topic_states for each in topic.partition_states):
                    self.deleting.append(to)
        return None

    def _write(self, asked: WriteStates) -> StatesWritten:
        ((state, version),) = asked.states.values()
        if self.others_write and self.others_write.pop():
            self.stored = Stored(self.stored.leader_and_isr, self.stored.controller_epoch, self.stored.version + 1)
        if version != self.stored.version:
            return StatesWritten({}, {T0: self.stored}, asked.of)
        before = self.stored.leader_and_isr
        assert state.isr
        self.is_lost = self.is_lost or not set(state.isr) <= set(self.topic.replicas[0])
        assert not self.is_lost or len(state.isr) == 1
        assert state.leader == NO_LEADER or state.leader in state.isr
        same = (state.leader, state.leader_epoch) == (before.leader, before.leader_epoch)
        assert same or state.leader_epoch == before.leader_epoch + 1
        self.stored = Stored(state, EPOCH, version + 1)
        return StatesWritten({T0: self.stored}, of=asked.of)

    # -- what happens -----------------------------------------------------------------------

    def brokers(self, lives: dict[int, int]) -> None:
        self.lives = {each: self.lives.get(each, 0) + more for each, more in lives.items()}
        self.deleting = deque(each for each in self.deleting if each in self.lives)
        self.carry_out(BrokersRead(self.registered()))

    def tool(self, target: tuple[int, ...]) -> None:
        if not self.wanted:
            self.wanted[T0] = target
            self.carry_out(ReassignmentRead({T0: target}))

    def client(self, target: tuple[int, ...] | None) -> None:
        done = self.carry_out(ReassignmentAsked({T0: target}, lambda _results: None))
        assert len([each for each in done if isinstance(each, AnswerReassignment)]) == 1

    def isr(self, others: set[int]) -> None:
        """The leader asks for some of its replicas, if it lives."""
        state, here = self.stored.leader_and_isr, self.it.cluster.replicas(T0)
        if state.leader in self.lives:
            isr = (state.leader, *sorted((others & set(here)) - {state.leader}))
            wanted = {T0: IsrWanted(state.leader_epoch, isr, self.stored.version)}
            epoch = self.it.cluster.brokers[state.leader].epoch
            self.carry_out(IsrAsked(state.leader, epoch, wanted, lambda _error, _results: None))

    def deleted(self, fails: bool) -> None:
        if self.deleting:
            self.carry_out(ReplicasDeleted(self.deleting.popleft(), (T0,), (T0,) if fails else ()))

    def heal(self) -> None:
        """All brokers are back, followers catch up, and what is to be deleted is."""
        self.brokers(dict.fromkeys(BROKERS, 1))
        for _ in range(6):
            self.isr(set(BROKERS))
            while self.deleting:
                self.deleted(False)


def _check(world: _World) -> None:
    cluster = world.it.cluster
    step = world.it._reassignments.step(T0)
    assert (step is ReassignmentStep.NONE) is (T0 not in cluster.reassigning)
    awaited = {ReassignmentStep.NONE, ReassignmentStep.CATCHING_UP}
    assert step in (awaited | {ReassignmentStep.DELETING} if world.awaits_deletion else awaited)
    here = set(cluster.replicas(T0))
    assert set(world.topic.replicas[0]) >= here
    states = cluster.replica_states[T0]
    assert here <= set(states)
    for each, state in states.items():
        assert (each in here) is (state in (ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE))


@given(STEPS, st.booleans(), st.lists(st.booleans(), max_size=8))
def test_what_was_asked_for_last_is_so_in_the_end(
    steps: list[tuple[str, object]], awaits_deletion: bool, others_write: list[bool]
) -> None:
    world = _World(awaits_deletion, others_write)
    for kind, what in steps:
        if kind == "successor":
            world.elect()
        else:
            getattr(world, kind)(what)
        _check(world)
        if world.is_lost:
            return
    later = world.it._reassignments._later  # what a tool asks for while old replicas are deleted
    target = later.get(T0, world.it.cluster.assignment(T0).target)
    world.heal()
    _check(world)
    assert world.it.cluster.reassigning == set()
    assert world.topic == Topic({0: target})
    assert world.wanted == {}
    assert set(world.it.cluster.replica_states[T0]) == set(target)
    assert world.stored.leader_and_isr.leader in target


@given(STEPS, st.integers(0, 14), st.booleans())
def test_a_topic_goes_once_it_has_moved_whatever_happens(
    steps: list[tuple[str, object]], asked_at: int, awaits_deletion: bool
) -> None:
    world = _World(awaits_deletion, [])
    for number, (kind, what) in enumerate([*steps, ("isr", set(BROKERS))]):
        if number == min(asked_at, len(steps)):
            world.carry_out(DeletionsRead(["t"]))
        if kind != "successor" and not world.is_removed:
            getattr(world, kind)(what)
    if world.is_lost:
        return
    for _ in range(3):
        if not world.is_removed:
            world.heal()
    assert world.is_removed
