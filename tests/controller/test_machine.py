"""The controller's decisions: a state, a stimulus, the expected instructions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from controller_machine import (
    EPOCH,
    T0,
    T1,
    asked,
    brief,
    broker,
    carried_out,
    machine,
    running,
    stored,
    with_leader_1,
    writes,
)

from controller.cluster import Topic
from controller.leader_election import LeaderAndIsr, Selection
from controller.request_batch import Send
from controller.states import PartitionState
from controller.stimuli import (
    AnswerIsr,
    BrokersRead,
    DropReports,
    HandBack,
    IsrAsked,
    IsrsReported,
    IsrWanted,
    Loaded,
    Log,
    Purpose,
    ReadUnclean,
    SettingsChanged,
    StatesWritten,
    TopicsRead,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest

# -- failover -------------------------------------------------------------------------------------


def test_brokers_hear_who_is_live_before_they_hear_of_leaders() -> None:
    found = machine().handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {T0: stored(1, 1, leader_epoch=3)}))
    assert brief(found) == [(1, "inform", []), (1, "lead", [(0, 1, 3)]), (1, "inform", [(0, 1, 3)])]


def test_up_to_0_10_1_they_hear_of_leaders_first() -> None:
    """KAFKA-4443."""
    it = machine(orders_before_metadata=True)
    found = carried_out(it, Loaded([broker(1)], {"t": Topic({0: (1,)})}, {T0: stored(1, 1, leader_epoch=3)}))
    told = [(0, 1, 3)]
    assert brief(found)[:2] == [(1, "lead", told), (1, "inform", told)]
    assert brief(found)[-1] == (1, "inform", told)


def test_up_to_0_10_1_they_hear_who_is_live_in_the_end() -> None:
    found = carried_out(machine(orders_before_metadata=True), Loaded([broker(1)], {}, {}))
    assert brief(found)[-1] == (1, "inform", [])


def test_a_partition_without_a_state_is_created_and_one_with_a_dead_leader_elected() -> None:
    topics = {"t": Topic({0: (1, 2), 1: (3, 2)})}
    found = machine().handle(Loaded([broker(1), broker(2)], topics, {T1: stored(3, 3, 2, leader_epoch=5, version=9)}))
    assert found[-2] == WriteStates(
        {T0: (LeaderAndIsr(1, 0, (1, 2)), None), T1: (LeaderAndIsr(2, 6, (2,)), 9)},
    )


def test_a_partition_without_a_live_replica_waits_for_one() -> None:
    it = machine()
    found = it.handle(Loaded([broker(1)], {"t": Topic({0: (2,)})}, {}))
    assert found[-1] == Log("partition t-0 has no leader: none of the replicas 2 is live; start one of these brokers")
    assert it.handle(BrokersRead([broker(1), broker(2)]))[-1] == WriteStates({T0: (LeaderAndIsr(2, 0, (2,)), None)})


def test_unclean_elections_ask_the_topic_s_settings() -> None:
    topics, states = {"t": Topic({0: (3, 2)})}, {T0: stored(3, 3)}
    it = machine()
    assert it.handle(Loaded([broker(2)], topics, states))[-2] == ReadUnclean([T0])
    (said,) = it.handle(UncleanRead([T0], ()))
    assert said == Log(
        "partition t-0 has no leader: no in-sync replica is live (ISR 3, live 2), and unclean leader election is "
        "not allowed; start one of the ISR"
    )
    assert it.handle(SettingsChanged({"u"})) == []
    assert it.handle(SettingsChanged({"t"})) == [ReadUnclean([T0])]
    assert it.handle(UncleanRead([T0], {"t"})) == [WriteStates({T0: (LeaderAndIsr(2, 1, (2,), recovering=True), 0)})]
    assert it.handle(SettingsChanged({"t"})) == []  # somebody is elected already


def test_settings_are_read_only_if_nothing_else_helps() -> None:
    topics = {"t": Topic({0: (3, 2), 1: (3,)})}
    found = machine().handle(Loaded([broker(2)], topics, {T0: stored(3, 2, 3), T1: stored(3, 3)}))
    assert not any(isinstance(each, ReadUnclean) for each in found)
    assert found[-2] == WriteStates({T0: (LeaderAndIsr(2, 1, (2,)), 0)})


def test_what_has_got_a_leader_meanwhile_is_elected_no_second_time() -> None:
    it = machine()
    it.handle(Loaded([broker(2)], {"t": Topic({0: (3, 2)})}, {T0: stored(3, 3)}))
    assert isinstance(it.handle(BrokersRead([broker(2), broker(3)]))[-1], WriteStates)
    assert it.handle(UncleanRead([T0], {"t"})) == []


# -- topics ---------------------------------------------------------------------------------------


def test_a_new_topic_is_written_then_sent() -> None:
    it = running({}, {})
    assert it.handle(TopicsRead({"t": Topic({0: (2, 1)})})) == [WriteStates({T0: (LeaderAndIsr(2, 0, (2, 1)), None)})]
    found = it.handle(StatesWritten({T0: stored(2, 2, 1)}))
    assert brief(found) == [
        (2, "lead", [(0, 2, 0)]),
        (1, "lead", [(0, 2, 0)]),
        (1, "inform", [(0, 2, 0)]),
        (2, "inform", [(0, 2, 0)]),
    ]
    assert isinstance(found[0], Send)
    assert isinstance(found[0].request, LeaderAndIsrRequest)
    assert found[0].request.topic_states[0].partition_states[0].is_new
    assert it.cluster.states == {T0: PartitionState.ONLINE}


def test_a_topic_grows_and_never_shrinks() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(TopicsRead({"t": Topic({1: (2,)})})) == [WriteStates({T1: (LeaderAndIsr(2, 0, (2,)), None)})]
    assert it.cluster.topics["t"].replicas == {0: (1,), 1: (2,)}


def test_an_election_that_has_been_asked_for_is_not_asked_for_again() -> None:
    it = running({}, {})
    it.handle(TopicsRead({"t": Topic({0: (1,)})}))
    assert it.handle(TopicsRead({"t": Topic({0: (1,)})})) == []


# -- what others wrote ----------------------------------------------------------------------------


def test_another_writer_s_state_is_elected_from_anew() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    asked = it.handle(BrokersRead([broker(2)]))
    assert asked[-2] == WriteStates({T0: (LeaderAndIsr(2, 1, (2,)), 0)})
    shrunk = stored(1, 1, leader_epoch=0, version=1)  # the leader had dropped broker 2 before it died
    assert it.handle(StatesWritten({}, {T0: shrunk})) == [ReadUnclean([T0])]
    assert isinstance(it.handle(UncleanRead([T0], ()))[-1], Log)
    assert it.handle(BrokersRead([broker(1), broker(2)]))[-1] == WriteStates({T0: (LeaderAndIsr(1, 1, (1,)), 1)})


def test_a_state_of_a_later_controller_is_left_alone() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    it.handle(BrokersRead([broker(2)]))
    (said,) = it.handle(StatesWritten({}, {T0: stored(2, 2, controller_epoch=EPOCH + 1, version=1)}))
    assert isinstance(said, Log)
    assert "epoch 8" in said.message
    assert it.cluster.states == {T0: PartitionState.OFFLINE}


def test_a_lost_reply_to_a_creation_is_taken_for_the_reply() -> None:
    it = running({}, {}, brokers=[1])
    it.handle(TopicsRead({"t": Topic({0: (1,)})}))
    assert brief(it.handle(StatesWritten({}, {T0: stored(1, 1)}))) == [
        (1, "lead", [(0, 1, 0)]),
        (1, "inform", [(0, 1, 0)]),
    ]


def test_a_state_of_another_epoch_where_none_should_be_is_not_taken() -> None:
    it = running({}, {}, brokers=[1])
    it.handle(TopicsRead({"t": Topic({0: (1,)})}))
    (said,) = it.handle(StatesWritten({}, {T0: stored(1, 1, controller_epoch=EPOCH - 1)}))
    assert isinstance(said, Log)
    assert it.cluster.states == {T0: PartitionState.NEW}


# -- brokers --------------------------------------------------------------------------------------


def test_a_broker_that_comes_hears_everything_and_the_others_of_it() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1)}, brokers=[1])
    assert brief(it.handle(BrokersRead([broker(1), broker(2)]))) == [
        (1, "inform", []),
        (2, "inform", [(0, 1, 0)]),
        (2, "lead", [(0, 1, 0)]),
        (1, "inform", [(0, 1, 0)]),
        (2, "inform", [(0, 1, 0)]),
    ]


def test_a_broker_that_bounced_between_two_looks_died_and_came() -> None:
    """Its leadership ends, and it is elected again: nobody else is in sync."""
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    found = carried_out(it, BrokersRead([broker(1, epoch=900), broker(2)]))
    assert brief(found)[0] == (2, "inform", [(0, 1, 0)])
    assert found[1] == Log(
        "partition t-0 has no leader: no in-sync replica is live (ISR 1, live none), and unclean leader election is "
        "not allowed; start one of the ISR"
    )
    assert writes(found) == [{T0: LeaderAndIsr(NO_LEADER, 1, (1,))}, {T0: LeaderAndIsr(1, 2, (1,))}]


def test_a_follower_that_bounced_leaves_the_isr() -> None:
    """It may have lost records that it had acknowledged."""
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    found = carried_out(it, BrokersRead([broker(1), broker(2, epoch=900)]))
    assert writes(found) == [{T0: LeaderAndIsr(1, 1, (1,))}]
    assert (2, "lead", [(0, 1, 1)]) in brief(found)


def test_the_others_hear_of_a_death_that_leaves_a_partition_without_a_leader() -> None:
    it = running({"t": Topic({0: (2,)})}, {T0: stored(2, 2)})
    informed, said, _ = it.handle(BrokersRead([broker(1)]))
    assert brief([informed]) == [(1, "inform", [(0, 2, 0)])]
    assert isinstance(informed, Send)
    assert isinstance(informed.request, UpdateMetadataRequest)
    assert [each.id for each in informed.request.live_brokers] == [1]
    assert isinstance(said, Log)


def test_a_broker_that_bounced_hears_of_its_successor_and_not_of_its_own_epoch() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2, leader_epoch=5, version=3)})
    found = carried_out(it, BrokersRead([broker(1, epoch=900), broker(2)]))
    assert writes(found) == [{T0: LeaderAndIsr(2, 6, (2,))}]
    told = [each for each in brief(found) if isinstance(each, tuple) and each[1] == "lead"]
    assert told == [(2, "lead", [(0, 2, 6)]), (1, "lead", [(0, 2, 6)])]


def test_without_broker_epochs_a_bounce_changes_an_address_and_nothing_else() -> None:
    """KAFKA-1120: whoever bounced is told who is alive, and gets no role."""
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)}, broker_epochs=False)
    bounced = replace(broker(1, epoch=900), port=9099)
    found = carried_out(it, BrokersRead([bounced, broker(2)]))
    assert brief(found) == [(1, "inform", []), (2, "inform", [])]
    assert it.cluster.brokers[1] == bounced
    assert it.handle(BrokersRead([bounced, broker(2)])) == []


def test_without_broker_epochs_a_death_beside_a_bounce_is_seen() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)}, (1, 2, 3), broker_epochs=False)
    found = carried_out(it, BrokersRead([broker(2, epoch=900), broker(3)]))
    assert writes(found) == [{T0: LeaderAndIsr(2, 1, (2,))}]


def test_a_broker_that_led_nothing_is_gone() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert brief(carried_out(it, BrokersRead([broker(1)])))[0] == (1, "inform", [])
    assert it.handle(BrokersRead([broker(1)])) == []


# -- dead replicas --------------------------------------------------------------------------------


def test_a_dead_follower_leaves_the_isr_and_the_others_hear_of_it() -> None:
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    found = carried_out(it, BrokersRead([broker(1), broker(3)]))
    assert writes(found) == [{T0: LeaderAndIsr(1, 1, (1, 3))}]
    assert {(1, "lead", ((0, 1, 1),)), (3, "lead", ((0, 1, 1),))} <= {
        (each[0], each[1], tuple(each[2])) for each in brief(found) if isinstance(each, tuple)
    }


def test_the_last_in_sync_replica_stays_in_the_isr() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1)})
    assert writes(carried_out(it, BrokersRead([broker(2)]))) == [{T0: LeaderAndIsr(NO_LEADER, 1, (1,))}]
    assert carried_out(it, BrokersRead([broker(2)])) == []


def test_a_removal_is_tried_again_where_another_has_written() -> None:
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    (_, handed_back) = it.handle(BrokersRead([broker(1), broker(2)]))[-2:]
    assert isinstance(handed_back, HandBack)
    it.handle(handed_back.stimulus)
    shrunk = stored(1, 1, 3, version=1)
    again = it.handle(StatesWritten({}, {T0: shrunk}, Purpose.OFFLINE))
    assert again == [WriteStates({T0: (LeaderAndIsr(1, 1, (1,)), 1)}, Purpose.OFFLINE)]


def test_replicas_are_told_of_a_removal_that_had_been_done() -> None:
    """The reply to the first attempt was lost: the second finds what it wants to write."""
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    (_, handed_back) = it.handle(BrokersRead([broker(1), broker(2)]))[-2:]
    assert isinstance(handed_back, HandBack)
    it.handle(handed_back.stimulus)
    done = stored(1, 1, 2, leader_epoch=1, version=1)
    told = brief(it.handle(StatesWritten({}, {T0: done}, Purpose.OFFLINE)))
    assert told == [(broker, kind, [(0, 1, 1)]) for kind in ("lead", "inform") for broker in (1, 2)]
    assert it.cluster.stored[T0] == done


def test_a_removal_is_repeated_if_another_write_of_this_controller_was_in_the_way() -> None:
    """That one has raised the leader epoch, and the dead replica is still in the ISR."""
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(1, 1, 2, 3)}, (1, 2, 3))
    (_, handed_back) = it.handle(BrokersRead([broker(1), broker(2)]))[-2:]
    assert isinstance(handed_back, HandBack)
    it.handle(handed_back.stimulus)
    other = stored(2, 1, 2, 3, leader_epoch=1, version=1)
    *_, again = it.handle(StatesWritten({}, {T0: other}, Purpose.OFFLINE))
    assert again == WriteStates({T0: (LeaderAndIsr(2, 2, (1, 2)), 1)}, Purpose.OFFLINE)


@pytest.mark.parametrize(("allowed", "isr"), [({"t"}, ()), ((), (1,))])
def test_in_0_8_the_last_replica_leaves_the_isr_if_unclean_elections_are_allowed(
    allowed: Collection[str], isr: tuple[int, ...]
) -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)}, (1, 2), selection=Selection.V0_8_2)
    handed_back = it.handle(BrokersRead([broker(2)]))[-1]
    assert isinstance(handed_back, HandBack)
    assert it.handle(handed_back.stimulus)[-1] == ReadUnclean([T0], Purpose.OFFLINE)
    written = it.handle(UncleanRead([T0], allowed, Purpose.OFFLINE))
    assert written == [WriteStates({T0: (LeaderAndIsr(NO_LEADER, 1, isr), 0)}, Purpose.OFFLINE)]


def test_what_has_gone_while_its_settings_were_read_is_left_alone() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)}, (1, 2), selection=Selection.V0_8_2)
    handed_back = it.handle(BrokersRead([broker(2)]))[-1]
    assert isinstance(handed_back, HandBack)
    it.handle(handed_back.stimulus)
    it.handle(TopicsRead({}))
    assert it.handle(UncleanRead([T0], {"t"}, Purpose.OFFLINE)) == []


def test_from_1_1_on_the_last_replica_stays_and_no_setting_is_read() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)}, (1, 2), selection=Selection.V1_1)
    handed_back = it.handle(BrokersRead([broker(2)]))[-1]
    assert isinstance(handed_back, HandBack)
    written = it.handle(handed_back.stimulus)
    assert written[-1] == WriteStates({T0: (LeaderAndIsr(NO_LEADER, 1, (1,)), 0)}, Purpose.OFFLINE)


# -- ISRs that leaders ask for --------------------------------------------------------------------


def test_an_isr_is_written_in_the_same_leader_epoch() -> None:
    assert asked(with_leader_1(), 1, 2, 3) == stored(1, 1, 2, 3, leader_epoch=5, version=4)


def test_an_isr_that_is_written_already_is_confirmed() -> None:
    it = with_leader_1()
    asked(it, 1)
    assert asked(it, 1) == stored(1, 1, leader_epoch=5, version=4)


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
        ({"version": 2}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"version": 4}, ErrorCode.NOT_CONTROLLER),
        ({"broker_epoch": 100}, ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_an_isr_that_rests_on_old_knowledge_is_refused(wanted: dict[str, int], answer: ErrorCode) -> None:
    assert asked(with_leader_1(), 1, **wanted) is answer


def test_a_dead_broker_is_not_taken_into_the_isr() -> None:
    it = with_leader_1()
    carried_out(it, BrokersRead([broker(1), broker(2)]))
    assert asked(it, 1, 2, 3) is ErrorCode.OPERATION_NOT_ATTEMPTED


def test_the_isr_of_an_unknown_partition_is_refused() -> None:
    assert asked(running({}, {}, (1,)), 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_isr_that_its_leader_has_written_is_told_to_all_brokers() -> None:
    it = with_leader_1()
    newer, older = stored(1, 1, leader_epoch=5, version=4), stored(1, 1, 2, 3, leader_epoch=5, version=2)
    found = it.handle(IsrsReported({T0: newer, T1: newer}, ["isr_change_1"]))
    assert brief(found) == [*((each, "inform", [(0, 1, 5)]) for each in (1, 2, 3)), DropReports(["isr_change_1"])]
    assert it.cluster.stored == {T0: newer}
    assert it.handle(IsrsReported({T0: older}, ["isr_change_2"])) == [DropReports(["isr_change_2"])]
    assert it.cluster.stored == {T0: newer}


# -- what is gone or unknown ----------------------------------------------------------------------


def test_a_topic_whose_znodes_are_gone_is_forgotten() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(TopicsRead({})) == []
    assert it.cluster.topics == {}


def test_a_leader_that_nobody_knows_is_no_leader() -> None:
    found = machine().handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {T0: stored(NO_LEADER, 1)}))
    assert found[-1] == WriteStates({T0: (LeaderAndIsr(1, 1, (1,)), 0)})


@pytest.mark.parametrize(
    ("isr", "read_back", "answer"),
    [
        ((1,), False, ErrorCode.INVALID_UPDATE_VERSION),  # as Kafka 3.9.1, whose leader waits for ever then
        ((1,), True, stored(1, 1, leader_epoch=5, version=4)),
        ((1, 2, 3), True, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_a_write_that_was_refused_because_it_had_been_done(
    isr: tuple[int, ...], read_back: bool, answer: object
) -> None:
    """The reply to the first attempt was lost: the second finds another version. `isr`: what ZooKeeper has."""
    it = with_leader_1(isr_read_back=read_back)
    it.handle(IsrAsked(1, 101, {T0: IsrWanted(5, (1,), 3)}, lambda _error, _results: None))
    (answered,) = it.handle(StatesWritten({}, {T0: stored(1, *isr, leader_epoch=5, version=4)}, Purpose.ISR))
    assert isinstance(answered, AnswerIsr)
    assert answered.results == {T0: answer}


@pytest.mark.parametrize("batch_again", [False, True])
def test_one_state_of_a_batch_was_refused(batch_again: bool) -> None:
    """Broker 1 has died, and had written another ISR of the second partition."""
    topics = {"t": Topic({0: (1, 2), 1: (1, 2, 3)})}
    states = {T0: stored(1, 1, 2), T1: stored(1, 1, 2, 3)}
    it = running(topics, states, (1, 2, 3), elects_batch_again=batch_again)
    first = writes(it.handle(BrokersRead([broker(2), broker(3)])))
    assert first == [{T0: LeaderAndIsr(2, 1, (2,)), T1: LeaderAndIsr(2, 1, (2, 3))}]
    found = it.handle(StatesWritten({T0: stored(2, 2, leader_epoch=1, version=1)}, {T1: stored(1, 1, 2, version=1)}))
    again, refused = {T0: LeaderAndIsr(2, 2, (2,))}, {T1: LeaderAndIsr(2, 1, (2,))}
    assert writes(found) == [{**again, **refused}] if batch_again else [refused]
    told = [partition for each in brief(found[:-1]) if isinstance(each, tuple) for partition, _, _ in each[2]]
    assert set(told) == (set() if batch_again else {0})


def test_new_partitions_of_a_batch_are_not_elected_again() -> None:
    n0 = TopicPartition("n", 0)
    topics = {"t": Topic({0: (1, 2)}), "n": Topic({0: (2, 1)})}
    it = machine(elects_batch_again=True)
    first = writes(it.handle(Loaded([broker(2)], topics, {T0: stored(1, 1, 2)})))
    assert first == [{T0: LeaderAndIsr(2, 1, (2,)), n0: LeaderAndIsr(2, 0, (2,))}]
    found = it.handle(StatesWritten({n0: stored(2, 2)}, {T0: stored(1, 1, 2, version=1)}))
    assert writes(found) == [{T0: LeaderAndIsr(2, 1, (2,))}]
    assert (2, "lead", [(0, 2, 0)]) in brief(found)
