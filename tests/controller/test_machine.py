"""The controller's decisions: a state, a stimulus, the expected instructions."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cluster import LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.machine import (
    BrokersRead,
    ControllerMachine,
    DeletionsRead,
    DropDeletion,
    Instruction,
    LeadershipRefused,
    Loaded,
    Log,
    ReadUnclean,
    RemoveTopic,
    ReplicasDeleted,
    SettingsChanged,
    StatesWritten,
    TopicRemoved,
    TopicsRead,
    UncleanRead,
    WriteStates,
)
from controller.partition_states import PartitionState
from controller.request_batch import Send
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE, NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
EPOCH = 7


def broker(number: int, epoch: int = 0) -> LiveBroker:
    return LiveBroker(number, epoch or 100 + number, f"h{number}", 9092)


def stored(leader: int, *isr: int, leader_epoch: int = 0, controller_epoch: int = EPOCH, version: int = 0) -> Stored:
    return Stored(LeaderAndIsr(leader, leader_epoch, isr), controller_epoch, version)


def machine(*, deletes_topics: bool = True) -> ControllerMachine:
    return ControllerMachine(1, EPOCH, deletes_topics=deletes_topics)


def running(
    topics: dict[str, Topic], states: dict[TopicPartition, Stored], brokers: Iterable[int] = (1, 2)
) -> ControllerMachine:
    """A controller that has loaded this, and whose brokers are all live."""
    it = machine()
    it.handle(Loaded([broker(each) for each in brokers], topics, states))
    return it


def brief(instructions: list[Instruction]) -> list[object]:
    """Requests in short: (broker, kind, [(partition, leader, leader epoch)]); other instructions as they are."""
    return [_brief(each) for each in instructions]


def _brief(instruction: Instruction) -> object:
    if not isinstance(instruction, Send):
        return instruction
    request = instruction.request
    match request:
        case LeaderAndIsrRequest():
            kind = "lead"
            said = [
                (s.partition_index, s.leader, s.leader_epoch) for t in request.topic_states for s in t.partition_states
            ]
        case UpdateMetadataRequest():
            kind = "inform"
            said = [
                (s.partition_index, s.leader, s.leader_epoch) for t in request.topic_states for s in t.partition_states
            ]
        case StopReplicaRequest():
            kind = "delete"
            said = [
                (s.partition_index, s.leader_epoch, s.delete_partition)
                for t in request.topic_states
                for s in t.partition_states
            ]
    return (instruction.broker_id, kind, said)


# -- failover -------------------------------------------------------------------------------------


def test_brokers_hear_who_is_live_before_they_hear_of_leaders() -> None:
    found = machine().handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {T0: stored(1, 1, leader_epoch=3)}))
    assert brief(found) == [(1, "inform", []), (1, "lead", [(0, 1, 3)]), (1, "inform", [(0, 1, 3)])]


def test_a_partition_without_a_state_is_created_and_one_with_a_dead_leader_elected() -> None:
    topics = {"t": Topic({0: (1, 2), 1: (3, 2)})}
    found = machine().handle(Loaded([broker(1), broker(2)], topics, {T1: stored(3, 3, 2, leader_epoch=5, version=9)}))
    assert found[-1] == WriteStates(
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
    assert it.handle(Loaded([broker(2)], topics, states))[-1] == ReadUnclean([T0])
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
    assert found[-1] == WriteStates({T0: (LeaderAndIsr(2, 1, (2,)), 0)})


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
    assert asked[-1] == WriteStates({T0: (LeaderAndIsr(2, 1, (2,)), 0)})
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
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    found = it.handle(BrokersRead([broker(1, epoch=900), broker(2)]))
    assert brief(found)[0] == (2, "inform", [(0, 1, 0)])
    assert found[1] == Log(
        "partition t-0 has no leader: no in-sync replica is live (ISR 1, live none), and unclean leader election is "
        "not allowed; start one of the ISR"
    )
    assert found[-1] == WriteStates({T0: (LeaderAndIsr(1, 1, (1,)), 0)})


def test_the_others_hear_of_a_death_that_leaves_a_partition_without_a_leader() -> None:
    it = running({"t": Topic({0: (2,)})}, {T0: stored(2, 2)})
    informed, said = it.handle(BrokersRead([broker(1)]))
    assert brief([informed]) == [(1, "inform", [(0, 2, 0)])]
    assert isinstance(informed, Send)
    assert isinstance(informed.request, UpdateMetadataRequest)
    assert [each.id for each in informed.request.live_brokers] == [1]
    assert isinstance(said, Log)


def test_a_broker_that_bounced_hears_of_its_successor_and_not_of_its_own_epoch() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2, leader_epoch=5, version=3)})
    found = brief(it.handle(BrokersRead([broker(1, epoch=900), broker(2)])))
    assert WriteStates({T0: (LeaderAndIsr(2, 6, (2,)), 3)}) in found
    assert not any(isinstance(each, tuple) and each[1] == "lead" for each in found)
    told = brief(it.handle(StatesWritten({T0: stored(2, 2, leader_epoch=6, version=4)})))
    assert [each for each in told if each[1] == "lead"] == [  # type: ignore[index]
        (1, "lead", [(0, 2, 6)]),
        (2, "lead", [(0, 2, 6)]),
    ]


def test_a_broker_that_led_nothing_is_gone() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert brief(it.handle(BrokersRead([broker(1)]))) == [(1, "inform", [])]
    assert it.handle(BrokersRead([broker(1)])) == []


# -- deletion -------------------------------------------------------------------------------------


def test_a_topic_is_removed_when_every_replica_is_deleted() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    assert brief(it.handle(DeletionsRead(["t"]))) == [
        (1, "inform", [(0, LEADER_DURING_DELETE, 0)]),
        (2, "inform", [(0, LEADER_DURING_DELETE, 0)]),
        (1, "delete", [(0, -2, True)]),
        (2, "delete", [(0, -2, True)]),
    ]
    assert it.handle(ReplicasDeleted(1, [T0])) == []
    assert it.handle(ReplicasDeleted(2, [T0])) == [RemoveTopic("t")]
    assert it.handle(TopicRemoved("t")) == []
    assert (it.cluster.topics, it.cluster.states, it.cluster.stored) == ({}, {}, {})


def test_a_deletion_goes_on_when_a_broker_comes_back() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1)}, brokers=[1])
    it.handle(DeletionsRead(["t"]))
    it.handle(ReplicasDeleted(1, [T0]))
    assert brief(it.handle(BrokersRead([broker(1), broker(2)])))[-1] == (2, "delete", [(0, -2, True)])
    assert it.handle(ReplicasDeleted(2, [T0], failed=[T0])) == []
    assert it.handle(ReplicasDeleted(2, [T0])) == [RemoveTopic("t")]


def test_a_deletion_is_taken_up_once_and_of_topics_that_exist() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(DeletionsRead(["x"])) == [DropDeletion("x")]
    it.handle(DeletionsRead(["t"]))
    assert it.handle(DeletionsRead(["t"])) == []


def test_a_topic_without_replicas_is_removed_at_once() -> None:
    it = running({"t": Topic({})}, {})
    assert it.handle(DeletionsRead(["t"]))[-1] == RemoveTopic("t")


def test_a_topic_whose_znodes_go_while_it_is_deleted() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    it.handle(DeletionsRead(["t"]))
    assert it.handle(TopicsRead({})) == []
    assert it.handle(ReplicasDeleted(1, [T0])) == []
    assert it.handle(TopicRemoved("t")) == []


def test_a_topic_whose_znodes_go_during_its_election() -> None:
    it = running({}, {}, brokers=[1])
    it.handle(TopicsRead({"t": Topic({0: (1,)})}))
    it.handle(TopicsRead({}))
    assert it.handle(StatesWritten({T0: stored(1, 1)}, {T1: None})) == []


def test_a_role_that_a_broker_does_not_take_is_reported() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(LeadershipRefused(1, {T0: ErrorCode.KAFKA_STORAGE_ERROR})) == [
        Log("broker 1 does not take its role for t-0: KAFKA_STORAGE_ERROR")
    ]


def test_nothing_is_elected_for_a_topic_that_goes() -> None:
    it = machine()
    found = it.handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {}, deletions=["t"]))
    assert brief(found) == [(1, "inform", []), (1, "inform", []), (1, "delete", [(0, -2, True)])]


def test_a_topic_whose_znodes_are_gone_is_forgotten() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(TopicsRead({})) == []
    assert it.cluster.topics == {}


def test_a_leader_that_nobody_knows_is_no_leader() -> None:
    found = machine().handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {T0: stored(NO_LEADER, 1)}))
    assert found[-1] == WriteStates({T0: (LeaderAndIsr(1, 1, (1,)), 0)})
