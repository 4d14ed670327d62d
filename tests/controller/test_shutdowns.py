"""Brokers that ask to shut down: a state, the request, the expected instructions."""

from __future__ import annotations

import pytest
from controller_machine import (
    T0,
    T1,
    asked,
    brief,
    broker,
    carried_out,
    running,
    stored,
    with_leader_1,
    writes,
)

from controller.cluster import Topic
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.stimuli import (
    AnswerShutdown,
    BrokersRead,
    HandBack,
    Instruction,
    Purpose,
    ShutdownAsked,
    StatesWritten,
    TopicsRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode


def shut_down(it: ControllerMachine, broker_id: int, broker_epoch: int = -1) -> tuple[list[Instruction], object]:
    """All instructions but the last, which is the answer: an error, or the partitions that remain."""
    *found, answer = carried_out(it, ShutdownAsked(broker_id, broker_epoch, lambda _error, _remaining: None))
    assert isinstance(answer, AnswerShutdown)
    return found, answer.error or list(answer.remaining)


def three() -> ControllerMachine:
    """Broker 1 leads partition 0, broker 2 partition 1; all are in sync."""
    topics = {"t": Topic({0: (1, 2, 3), 1: (2, 1, 3)})}
    return running(topics, {T0: stored(1, 3, 2, 1), T1: stored(2, 2, 1, 3)}, (1, 2, 3))


def test_a_broker_that_shuts_down_leaves_its_leaderships_and_every_isr() -> None:
    found, remaining = shut_down(three(), 1)
    assert remaining == []
    assert writes(found) == [{T0: LeaderAndIsr(2, 1, (3, 2))}, {T1: LeaderAndIsr(2, 1, (2, 3))}]
    assert (1, "delete", [(1, 0, False)]) in brief(found)
    told = [each for each in brief(found) if isinstance(each, tuple) and each[1] == "lead"]
    assert told == [
        *((each, "lead", [(0, 2, 1)]) for each in (1, 2, 3)),
        *((each, "lead", [(1, 2, 1)]) for each in (2, 3)),
    ]


def test_three_brokers_shut_down_one_after_another() -> None:
    """As AdminTest of Kafka: the last one stays the leader, and the only one in sync."""
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    answers = [shut_down(it, each)[1] for each in (3, 2, 1)]
    assert answers == [[], [], [T0]]
    assert it.cluster.stored[T0].leader_and_isr == LeaderAndIsr(1, 2, (1,))


def test_what_has_one_replica_only_goes_down_with_its_broker() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    found, remaining = shut_down(it, 1)
    assert (writes(found), remaining) == ([], [])


@pytest.mark.parametrize(
    ("broker_id", "epoch", "answer"),
    [(4, -1, ErrorCode.BROKER_NOT_AVAILABLE), (1, 100, ErrorCode.STALE_BROKER_EPOCH), (1, 101, [])],
)
def test_who_may_shut_down(broker_id: int, epoch: int, answer: object) -> None:
    assert shut_down(three(), broker_id, epoch)[1] == answer


def test_a_broker_that_shuts_down_leads_nothing_new_until_it_is_back() -> None:
    it = three()
    shut_down(it, 1)
    u = TopicPartition("u", 0)
    topics = {**it.cluster.topics, "u": Topic({0: (1, 3)})}
    assert writes(carried_out(it, TopicsRead(topics))) == [{u: LeaderAndIsr(3, 0, (3,))}]
    carried_out(it, BrokersRead([broker(2), broker(3)]))
    carried_out(it, BrokersRead([broker(1, epoch=900), broker(2), broker(3)]))
    topics = {**topics, "v": Topic({0: (1, 3)})}
    assert writes(carried_out(it, TopicsRead(topics))) == [{TopicPartition("v", 0): LeaderAndIsr(1, 0, (1, 3))}]


def test_a_broker_that_shuts_down_is_not_taken_into_an_isr() -> None:
    it = with_leader_1()
    shut_down(it, 3)
    assert asked(it, 1, 2, 3) is ErrorCode.OPERATION_NOT_ATTEMPTED


def test_a_shutdown_is_elected_for_anew_where_another_has_written() -> None:
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    it.handle(ShutdownAsked(1, -1, lambda _error, _remaining: None))
    again = it.handle(StatesWritten({}, {T0: stored(1, 1, 3, version=1)}))
    assert again == [WriteStates({T0: (LeaderAndIsr(3, 1, (3,)), 1)})]


def test_a_state_that_cannot_be_written_does_not_keep_a_broker_from_its_answer() -> None:
    it = running({"t": Topic({0: (2, 1)})}, {T0: stored(2, 2, 1)})
    *_, waiting = it.handle(ShutdownAsked(1, -1, lambda _error, _remaining: None))
    assert isinstance(waiting, HandBack)
    (removal, waiting) = it.handle(waiting.stimulus)
    assert isinstance(removal, WriteStates)
    assert isinstance(waiting, HandBack)
    it.handle(StatesWritten({}, {T0: None}, Purpose.OFFLINE))
    assert [type(each) for each in it.handle(waiting.stimulus)] == [AnswerShutdown]
