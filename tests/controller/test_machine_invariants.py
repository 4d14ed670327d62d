"""Whatever happens in whatever order, what a controller writes keeps to the rules."""

from __future__ import annotations

from collections import deque

from controller_machine import EPOCH, T0, broker, machine
from hypothesis import given
from hypothesis import strategies as st

from controller.cluster import Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.states import PartitionState, ReplicaState
from controller.stimuli import (
    AnswerShutdown,
    BrokersRead,
    ElectionAsked,
    HandBack,
    ImbalanceDue,
    IsrAsked,
    IsrWanted,
    LeadershipAnswered,
    Loaded,
    LogDirsFailed,
    PreferredRead,
    ReadUnclean,
    ShutdownAsked,
    StatesWritten,
    Stimulus,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.wire.cluster import NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode

REPLICAS = (1, 2, 3)

#: Who is registered, and how many lives later; who shuts down; whose disk fails; who reports that; which ISR
#: the leader asks for; who wants the preferred leader.
REGISTERED = st.dictionaries(st.sampled_from(REPLICAS), st.integers(1, 3), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("brokers"), REGISTERED),
        st.tuples(st.just("shutdown"), st.sampled_from(REPLICAS)),
        st.tuples(st.just("disk"), st.tuples(st.sampled_from(REPLICAS), st.booleans())),
        st.tuples(st.just("folder"), st.sampled_from(REPLICAS)),
        st.tuples(st.just("isr"), st.sets(st.sampled_from(REPLICAS), min_size=1)),
        st.tuples(st.just("elect"), st.sampled_from(["znode", "imbalance", "preferred"])),
    ),
    max_size=12,
)


WISHES: dict[str, Stimulus] = {
    "znode": PreferredRead([T0]),
    "imbalance": ImbalanceDue(),
    "preferred": ElectionAsked([T0], False, lambda _results: None),
}


class _ZooKeeper:
    """The state znode of one partition. `others_write`: whether another writes it first, the last write first."""

    def __init__(self, *, unclean: bool, others_write: list[bool]) -> None:
        self.stored: Stored | None = None
        self._unclean = unclean
        self._others_write = others_write

    def carry_out(self, it: ControllerMachine, stimulus: Stimulus) -> int:
        """All that follows; returns how many requests to shut down were answered."""
        waiting, answers = deque([stimulus]), 0
        while waiting:
            for each in it.handle(waiting.popleft()):
                match each:
                    case HandBack():
                        waiting.append(each.stimulus)
                    case ReadUnclean():
                        waiting.append(UncleanRead(each.partitions, {"t"} if self._unclean else ()))
                    case WriteStates():
                        waiting.append(self._write(each))
                    case AnswerShutdown():
                        answers += 1
        return answers

    def _write(self, asked_for: WriteStates) -> StatesWritten:
        ((state, version),) = asked_for.states.values()
        if self.stored is not None and self._others_write and self._others_write.pop():
            self.stored = Stored(self.stored.leader_and_isr, self.stored.controller_epoch, self.stored.version + 1)
        if version != (None if self.stored is None else self.stored.version):
            return StatesWritten({}, {T0: self.stored}, asked_for.of)
        self._check(state)
        self.stored = Stored(state, EPOCH, 0 if version is None else version + 1)
        return StatesWritten({T0: self.stored}, of=asked_for.of)

    def _check(self, state: LeaderAndIsr) -> None:
        assert state.isr
        assert set(state.isr) <= set(REPLICAS)
        assert len(set(state.isr)) == len(state.isr)
        assert state.leader == NO_LEADER or state.leader in state.isr
        if self.stored is None:
            assert state.leader_epoch == 0
            return
        before = self.stored.leader_and_isr
        asked_by_leader = (state.leader, state.leader_epoch) == (before.leader, before.leader_epoch)
        assert asked_by_leader or state.leader_epoch == before.leader_epoch + 1
        if not self._unclean and not asked_by_leader:  # no rule but an unclean election adds anybody
            assert set(state.isr) <= set(before.isr)


@given(STEPS, st.booleans(), st.lists(st.booleans(), max_size=8))
def test_whatever_is_written_keeps_to_the_rules(
    steps: list[tuple[str, object]], unclean: bool, others_write: list[bool]
) -> None:
    it, zookeeper = machine(), _ZooKeeper(unclean=unclean, others_write=others_write)
    lives = dict.fromkeys(REPLICAS, 1)
    zookeeper.carry_out(it, Loaded([broker(each, 100 + each) for each in REPLICAS], {"t": Topic({0: REPLICAS})}, {}))
    for kind, what in steps:
        if kind == "brokers" and isinstance(what, dict):
            lives = {each: lives.get(each, 0) + life for each, life in what.items()}
            zookeeper.carry_out(it, BrokersRead([broker(each, 100 * life + each) for each, life in lives.items()]))
        elif kind == "shutdown" and isinstance(what, int):
            stimulus = ShutdownAsked(what, -1, lambda _error, _remaining: None)
            assert zookeeper.carry_out(it, stimulus) == 1
            state = it.cluster.stored[T0].leader_and_isr
            assert (
                what not in it.cluster.brokers or what not in state.isr or state.leader == what or len(state.isr) == 1
            )
        elif kind == "elect":
            zookeeper.carry_out(it, WISHES[str(what)])
        elif kind == "disk" and isinstance(what, tuple):
            zookeeper.carry_out(it, _role(*what))
        elif kind == "folder" and isinstance(what, int):
            zookeeper.carry_out(it, LogDirsFailed([what], []))
        elif kind == "isr" and isinstance(what, set) and (wanted := _wanted(it, what)) is not None:
            before = it.cluster.stored[T0].leader_and_isr
            zookeeper.carry_out(it, wanted)
            state = it.cluster.stored[T0].leader_and_isr
            assert state.isr != wanted.wanted[T0].isr or set(state.isr) <= set(it.cluster.live) or before == state
        _check_states(it)
    assert it.cluster.stored[T0] == zookeeper.stored


def _role(broker_id: int, fails: bool) -> LeadershipAnswered:
    if fails:
        return LeadershipAnswered(broker_id, (), {T0: ErrorCode.KAFKA_STORAGE_ERROR})
    return LeadershipAnswered(broker_id, [T0])


def _check_states(it: ControllerMachine) -> None:
    """A replica that is not online is offline, and the leader of an online partition is online or shuts down."""
    for each, state in it.cluster.replica_states[T0].items():
        assert state in (ReplicaState.ONLINE, ReplicaState.OFFLINE)
        assert state is ReplicaState.OFFLINE or it.cluster.is_online(each, T0)
    leader = it.cluster.stored[T0].leader_and_isr.leader
    assert it.cluster.is_online(leader, T0) is (it.cluster.states[T0] is PartitionState.ONLINE)


def _wanted(it: ControllerMachine, others: set[int]) -> IsrAsked | None:
    """What a live leader asks for: itself and others. None if there is no live leader."""
    stored = it.cluster.stored[T0]
    state = stored.leader_and_isr
    if state.leader not in it.cluster.brokers:
        return None
    isr = (state.leader, *sorted(others - {state.leader}))
    wanted = IsrWanted(state.leader_epoch, isr, stored.version)
    return IsrAsked(state.leader, it.cluster.brokers[state.leader].epoch, {T0: wanted}, lambda _error, _results: None)
