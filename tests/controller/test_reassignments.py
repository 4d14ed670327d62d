"""Other replicas for a partition: a state, a stimulus, the expected instructions."""

from __future__ import annotations

from typing import Any

import pytest
from controller_machine import EPOCH, T0, T1, asked, brief, broker, carried_out, running, stored, writes

from controller.cluster import Assignment, Stored, Topic
from controller.forms import ControllerForm
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.states import ReplicaState
from controller.stimuli import (
    AnswerListing,
    AnswerReassignment,
    AssignmentsWritten,
    BrokersRead,
    DeletionsRead,
    HandBack,
    Instruction,
    IsrsReported,
    Loaded,
    Log,
    Purpose,
    ReadStates,
    ReassignmentAsked,
    ReassignmentRead,
    ReassignmentsListed,
    ReplicasDeleted,
    StatesRead,
    StatesWritten,
    Stimulus,
    TrimReassignment,
    WriteAssignments,
    WriteStates,
)
from rebalance_lab.wire.kafka.error_codes import ErrorCode

BOTH = Assignment((2, 3, 1), (3,), (1,))
MOVE = ReassignmentRead({T0: (2, 3)})


def before(*isr: int, topic: Topic | None = None, **options: bool | ControllerForm) -> ControllerMachine:
    """Partition 0 on brokers 1 and 2, led by 1; brokers 1 to 4 live."""
    states = {T0: stored(1, *(isr or (1, 2)), leader_epoch=5, version=3)}
    return running({"t": topic or Topic({0: (1, 2)})}, states, (1, 2, 3, 4), **options)


def moving(*, awaits_deletion: bool = False) -> ControllerMachine:
    """It moves to brokers 2 and 3; 3 is not in sync yet."""
    it = before(awaits_deletion=awaits_deletion)
    carried_out(it, MOVE)
    return it


def in_sync(it: ControllerMachine) -> list[Instruction]:
    """What follows when broker 3 is in sync."""
    current = it.cluster.stored[T0]
    state = LeaderAndIsr(1, current.leader_and_isr.leader_epoch, (1, 2, 3))
    it.cluster.stored[T0] = now = stored(1, 1, 2, 3, leader_epoch=state.leader_epoch, version=current.version + 1)
    return carried_out(it, StatesRead([T0], {T0: now}))


def topics(instructions: list[Instruction]) -> list[tuple[object, ...]]:
    """What is written to topics' znodes: replicas, those that are added, those that are removed."""
    return [
        (dict(each.after.replicas), dict(each.after.adding), dict(each.after.removing))
        for each in instructions
        if isinstance(each, WriteAssignments)
    ]


def test_an_assignment_lists_its_target_first() -> None:
    assert Assignment((1, 2)).reassigned_to((2, 3)) == BOTH
    assert (BOTH.origin, BOTH.target) == ((2, 1), (2, 3))
    assert BOTH.reassigned_to((4, 2)) == Assignment((4, 2, 1), (4,), (1,))
    assert BOTH.reassigned_to(BOTH.origin) == Assignment((2, 1))


def test_new_replicas_are_written_then_told_in_an_epoch_of_their_own() -> None:
    it = before()
    found = carried_out(it, MOVE)
    assert topics(found) == [({0: (2, 3, 1)}, {0: (3,)}, {0: (1,)})]
    assert writes(found) == [{T0: LeaderAndIsr(1, 6, (1, 2))}]
    assert [each for each in brief(found) if isinstance(each, tuple) and each[1] == "lead"] == [
        (2, "lead", [(0, 1, 6)]),
        (1, "lead", [(0, 1, 6)]),
        (3, "lead", [(0, 1, 6)]),
    ]
    assert it.cluster.replica_states[T0][3] is ReplicaState.NEW


def test_what_is_in_sync_gets_a_leader_then_the_old_replica_goes_then_the_topic_is_written() -> None:
    it = moving()
    found = in_sync(it)
    assert writes(found) == [{T0: LeaderAndIsr(2, 7, (1, 2, 3))}, {T0: LeaderAndIsr(2, 8, (2, 3))}]
    kinds = [each[1] if isinstance(each, tuple) else type(each).__name__ for each in brief(found)]
    assert kinds.index("lead") < kinds.index("delete") < kinds.index("WriteAssignments")
    assert [each for each in brief(found) if isinstance(each, tuple) and each[1] == "delete"] == [
        (1, "delete", [(0, 8, False)]),
        (1, "delete", [(0, 8, True)]),
    ]
    assert topics(found) == [({0: (2, 3)}, {}, {})]
    assert TrimReassignment({T0: (2, 3)}) in found
    assert set(it.cluster.replica_states[T0]) == {2, 3}
    assert it.cluster.reassigning == set()


def test_an_isr_that_the_leader_asks_for_lets_it_go_on() -> None:
    it = moving()
    assert asked(it, 1, 2, 3, leader_epoch=6, version=4) != ErrorCode.NONE
    assert it.cluster.replicas(T0) == (2, 3)


def test_an_isr_that_the_leader_has_written_lets_it_go_on() -> None:
    it = moving()
    written = stored(1, 1, 2, 3, leader_epoch=6, version=5)
    found = it.handle(IsrsReported({T0: written}, ["a"]))
    assert ReadStates([T0]) in found


def test_a_state_that_lacks_a_new_replica_changes_nothing() -> None:
    it = moving()
    assert it.handle(StatesRead([T0], {T0: stored(1, 1, 2, leader_epoch=6, version=9)})) == []


def test_the_state_is_read_again_when_a_broker_of_the_target_comes() -> None:
    """It may have joined the ISR before the controller heard that it had gone."""
    it = moving()
    carried_out(it, BrokersRead([broker(each) for each in (1, 2, 4)]))
    assert ReadStates((T0,)) in it.handle(BrokersRead([broker(3, 999), *(broker(each) for each in (1, 2, 4))]))


def test_a_broker_without_a_replica_of_the_target_changes_nothing() -> None:
    it = moving()
    carried_out(it, BrokersRead([broker(each) for each in (1, 2, 3)]))
    found = it.handle(BrokersRead([broker(4, 999), *(broker(each) for each in (1, 2, 3))]))
    assert not [each for each in found if isinstance(each, ReadStates)]


def test_what_is_written_beside_it_keeps_what_has_not_ended() -> None:
    """Partition 1 moves its leader while the topic is written for another reason."""
    states = {each: stored(1, 1, 2, leader_epoch=5, version=3) for each in (T0, T1)}
    it = running({"t": Topic({0: (1, 2), 1: (1, 2)})}, states, (1, 2, 3), awaits_deletion=True)
    carried_out(it, ReassignmentRead({T0: (2, 3), T1: (2, 3)}))
    now = {each: stored(1, 1, 2, 3, leader_epoch=6, version=9) for each in (T0, T1)}
    carried_out(it, StatesRead([T0, T1], now))  # both wait for broker 1
    found = carried_out(it, ReplicasDeleted(1, (T0,)))
    assert topics(found) == [({0: (2, 3), 1: (2, 3, 1)}, {1: (3,)}, {1: (1,)})]
    assert topics(carried_out(it, ReplicasDeleted(1, (T1,)))) == [({0: (2, 3), 1: (2, 3)}, {}, {})]


def test_the_deletion_is_awaited_if_that_is_asked_for() -> None:
    it = moving(awaits_deletion=True)
    found = in_sync(it)
    assert topics(found) == []
    assert topics(carried_out(it, ReplicasDeleted(1, (T0,), failed=(T0,)))) == []
    assert it.cluster.replica_states[T0][1] is ReplicaState.DELETION_INELIGIBLE
    carried_out(it, BrokersRead([broker(each) for each in (2, 3, 4)]))
    back = carried_out(it, BrokersRead([broker(1, 999), *(broker(each) for each in (2, 3, 4))]))
    assert (1, "delete", [(0, it.cluster.stored[T0].leader_and_isr.leader_epoch, True)]) in brief(back)
    assert topics(carried_out(it, ReplicasDeleted(1, (T0,)))) == [({0: (2, 3)}, {}, {})]


def test_until_old_replicas_are_deleted_a_client_is_refused_and_a_tool_waits() -> None:
    it = moving(awaits_deletion=True)
    in_sync(it)
    for target in ((4,), None):
        found = carried_out(it, ReassignmentAsked({T0: target}, lambda _results: None))
        (answer,) = [each for each in found if isinstance(each, AnswerReassignment)]
        assert (why := answer.results[T0]) is not None and why.code is ErrorCode.REASSIGNMENT_IN_PROGRESS
    (listing,) = it.handle(ReassignmentsListed(None, lambda _found: None))
    assert isinstance(listing, AnswerListing) and listing.found == {T0: BOTH}
    assert topics(carried_out(it, ReassignmentRead({T0: (2, 4)}))) == []
    assert topics(carried_out(it, ReplicasDeleted(1, (T0,)))) == [
        ({0: (2, 3)}, {}, {}),
        ({0: (2, 4, 3)}, {0: (4,)}, {0: (3,)}),
    ]


def test_a_broker_that_dies_before_it_has_deleted_is_awaited() -> None:
    it = moving(awaits_deletion=True)
    in_sync(it)
    carried_out(it, BrokersRead([broker(each) for each in (2, 3, 4)]))
    assert it.cluster.replica_states[T0][1] is ReplicaState.DELETION_INELIGIBLE
    assert it.cluster.reassigning == {T0}


def test_a_successor_goes_on_with_what_it_finds() -> None:
    topic = Topic({0: BOTH.replicas}, adding={0: BOTH.adding}, removing={0: BOTH.removing})
    it = running({"t": topic}, {T0: stored(1, 1, 2, leader_epoch=6, version=3)}, ())
    states = {T0: stored(1, 1, 2, leader_epoch=6, version=3)}
    found = carried_out(it, Loaded([broker(each) for each in (1, 2, 3)], {"t": topic}, states))
    assert writes(found) == [{T0: LeaderAndIsr(1, 7, (1, 2))}]
    assert topics(found) == []


def test_what_has_begun_goes_on_before_a_request_that_came_meanwhile() -> None:
    """The old replica is out of the ISR: if the request came first, it would have broker 3 deleted, which leads."""
    topic = Topic({0: (3, 1)}, adding={0: (3,)}, removing={0: (1,)})
    states = {T0: stored(3, 3, leader_epoch=6, version=3)}
    loaded = Loaded([broker(each) for each in (1, 2, 3, 4)], {"t": topic}, states, wanted={T0: (4,)})
    it = running({}, {}, ())
    found = carried_out(it, loaded)
    assert topics(found) == [({0: (3,)}, {}, {}), ({0: (4, 3)}, {0: (4,)}, {0: (3,)})]
    assert not [each for each in brief(found) if isinstance(each, tuple) and each[:2] == (3, "delete")]


def test_a_request_that_came_meanwhile_counts_more() -> None:
    topic = Topic({0: BOTH.replicas}, adding={0: BOTH.adding}, removing={0: BOTH.removing})
    it = running({}, {}, ())
    states = {T0: stored(1, 1, 2, leader_epoch=6, version=3)}
    loaded = Loaded([broker(each) for each in (1, 2, 3, 4)], {"t": topic}, states, wanted={T0: (2, 4)})
    assert topics(carried_out(it, loaded)) == [({0: (2, 4, 1)}, {0: (4,)}, {0: (1,)})]


def test_a_replica_that_is_not_wanted_any_more_is_deleted_first() -> None:
    it = moving()
    found = carried_out(it, ReassignmentRead({T0: (2, 4)}))
    assert (3, "delete", [(0, 6, True)]) in brief(found)
    assert writes(found) == [{T0: LeaderAndIsr(1, 7, (1, 2))}]
    assert set(it.cluster.replica_states[T0]) == {1, 2, 4}


def test_a_client_is_answered_once_it_has_begun() -> None:
    answers: list[object] = []
    it = before()
    request = ReassignmentAsked({T0: (2, 3), T1: (1,)}, answers.append)
    found = carried_out(it, request)
    (answer,) = [each for each in found if isinstance(each, AnswerReassignment)]
    answer.give()
    assert answers == [answer.results]
    assert answer.results[T0] is None
    assert (why := answer.results[T1]) is not None and why.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert TrimReassignment({T0: None}) in found
    (listing,) = it.handle(ReassignmentsListed(None, answers.append))
    assert isinstance(listing, AnswerListing)
    assert listing.found == {T0: BOTH}


def test_another_writer_is_written_over_and_a_later_controller_is_not() -> None:
    it = before()
    write = _written_to(it)
    again = it.handle(StatesWritten({}, {T0: stored(1, 1, 2, leader_epoch=5, version=8)}, write.of))
    assert again == [WriteStates({T0: (LeaderAndIsr(1, 6, (1, 2)), 8)}, Purpose.REASSIGNMENT)]
    later = stored(1, 1, 2, leader_epoch=6, controller_epoch=EPOCH + 1, version=9)
    (said,) = it.handle(StatesWritten({}, {T0: later}, write.of))
    assert isinstance(said, Log)
    assert f"a controller of epoch {EPOCH + 1} has written its state" in said.message
    assert it.cluster.reassigning == set()


def test_replicas_are_told_of_a_smaller_isr_that_had_been_written() -> None:
    """The reply to the first attempt was lost: the second finds what it wants to write."""
    it = moving()
    now = stored(2, 1, 2, 3, leader_epoch=6, version=5)
    it.cluster.stored[T0] = now
    write = _written_to(it, StatesRead([T0], {T0: now}), Purpose.REMOVAL)
    (state, _) = write.states[T0]
    assert (state.leader_epoch, state.isr) == (8, (2, 3))
    done = stored(2, 2, 3, leader_epoch=8, version=7)
    told = brief(it.handle(StatesWritten({}, {T0: done}, write.of)))
    assert told[:2] == [(2, "lead", [(0, 2, 8)]), (3, "lead", [(0, 2, 8)])]


def _written_to(it: ControllerMachine, stimulus: Stimulus = MOVE, of: Purpose = Purpose.REASSIGNMENT) -> WriteStates:
    """Begin, by default to move, until a state is to be written for this purpose."""
    waiting = [stimulus]
    while True:
        for each in it.handle(waiting.pop(0)):
            match each:
                case WriteStates() if each.of is of:
                    return each
                case WriteStates():
                    now = {
                        part: Stored(state, EPOCH, (version or 0) + 1) for part, (state, version) in each.states.items()
                    }
                    waiting.append(StatesWritten(now, of=each.of))
                case HandBack():
                    waiting.append(each.stimulus)
                case WriteAssignments():
                    waiting.append(AssignmentsWritten(each.topic, each.changed))
                case ReadStates():
                    waiting.append(StatesRead(each.partitions, dict(it.cluster.stored)))


def test_a_topic_that_goes_takes_its_reassignment_with_it() -> None:
    it = before()
    it.handle(MOVE)
    (said,) = it.handle(AssignmentsWritten("t", {0: BOTH}, written=False))
    assert isinstance(said, Log)
    assert "topic t has been deleted" in said.message


def test_a_topic_is_not_deleted_before_it_has_moved() -> None:
    it = moving()
    assert brief(carried_out(it, DeletionsRead(["t"]))) == []
    assert asked(it, 1, 2, 3, leader_epoch=6, version=4) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert it.cluster.reassigning == set()
    assert set(it.cluster.replica_states[T0].values()) == {ReplicaState.DELETION_STARTED}


def test_a_topic_that_is_to_be_deleted_gets_leaders_until_it_has_moved() -> None:
    """In Kafka neither would end."""
    it = moving()
    carried_out(it, DeletionsRead(["t"]))
    died = carried_out(it, BrokersRead([broker(each) for each in (2, 3, 4)]))
    assert writes(died) == [{T0: LeaderAndIsr(2, 7, (2,))}]
    assert it.cluster.stored[T0].leader_and_isr.leader == 2


def test_one_that_is_to_be_deleted_and_does_not_move_gets_none() -> None:
    it = before()
    it.handle(DeletionsRead(["t"]))
    assert writes(carried_out(it, BrokersRead([broker(each) for each in (2, 3, 4)]))) == []


@pytest.mark.parametrize("target", [(), (1, 1), (-1,)])
def test_what_a_client_cannot_ask_for(target: tuple[int, ...]) -> None:
    found = carried_out(before(), ReassignmentAsked({T0: target}, lambda _results: None))
    (answer,) = [each for each in found if isinstance(each, AnswerReassignment)]
    assert (why := answer.results[T0]) is not None and why.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert topics(found) == []


@pytest.mark.parametrize(
    ("options", "refused"),
    [({}, False), ({"refuses_dead_targets": True}, True)],
)
def test_what_a_tool_asks_of_a_dead_broker(options: dict[str, Any], refused: bool) -> None:
    """Broker 9 is dead."""
    found = carried_out(before(**options), ReassignmentRead({T0: (2, 9)}))
    assert [each for each in found if isinstance(each, TrimReassignment)] == [TrimReassignment({T0: None})] * refused
    assert topics(found) == [({0: (2, 9, 1)}, {0: (9,)}, {0: (1,)})] * (not refused)
