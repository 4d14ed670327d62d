"""Leaders that somebody wants: a state, the wish, the expected instructions."""

from __future__ import annotations

import pytest
from controller_machine import EPOCH, T0, T1, brief, broker, carried_out, machine, running, stored, writes

from controller.cluster import Stored, Topic
from controller.leader_election import LeaderAndIsr, imbalanced
from controller.machine import ControllerMachine
from controller.refusals import NotElected
from controller.states import PartitionState
from controller.stimuli import (
    AnswerElection,
    BrokersRead,
    DeletionsRead,
    DropPreferred,
    ElectionAsked,
    HandBack,
    ImbalanceDue,
    Loaded,
    Log,
    PreferredRead,
    StatesWritten,
    TopicRemoved,
    TopicsRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import NO_LEADER
from rebalance_lab.wire.kafka.error_codes import ErrorCode

TOPICS = {"t": Topic({0: (1, 2)})}


def led_by_2(*isr: int, brokers: tuple[int, ...] = (1, 2)) -> ControllerMachine:
    """Broker 1 is preferred, broker 2 leads."""
    return running(TOPICS, {T0: stored(2, *isr, leader_epoch=4, version=9)}, brokers)


def asked(it: ControllerMachine, *partitions: TopicPartition, unclean: bool = False) -> dict[TopicPartition, object]:
    *_, answer = carried_out(it, ElectionAsked(partitions, unclean, lambda _results: None))
    assert isinstance(answer, AnswerElection)
    return dict(answer.results)


# -- the znode ------------------------------------------------------------------------------------


def test_the_preferred_replica_leads_and_the_znode_goes() -> None:
    found = carried_out(led_by_2(2, 1), PreferredRead([T0]))
    assert writes(found) == [{T0: LeaderAndIsr(1, 5, (2, 1))}]
    assert [each for each in brief(found) if isinstance(each, tuple)] == [
        (1, "lead", [(0, 1, 5)]),
        (2, "lead", [(0, 1, 5)]),
        (1, "inform", [(0, 1, 5)]),
        (2, "inform", [(0, 1, 5)]),
    ]
    assert found[-1] == DropPreferred()


def test_a_preferred_replica_that_is_gone_does_not_lead_and_the_znode_goes() -> None:
    """`ControllerIntegrationTest.testPreferredReplicaLeaderElectionWithOfflinePreferredReplica`."""
    found = carried_out(led_by_2(2, 1, brokers=(2,)), PreferredRead([T0]))
    assert not any(T0 in each and each[T0].leader == 1 for each in writes(found))
    assert found[-2:] == [
        Log("partition t-0 keeps its leader 2: the preferred replica 1 is not live"),
        DropPreferred(),
    ]


def test_a_preferred_replica_that_is_not_in_sync_does_not_lead() -> None:
    assert carried_out(led_by_2(2), PreferredRead([T0]))[-2:] == [
        Log("partition t-0 keeps its leader 2: the preferred replica 1 is not in sync"),
        DropPreferred(),
    ]


def test_after_a_failure_and_a_return_the_preferred_leader_is_two_epochs_further() -> None:
    """`ControllerIntegrationTest.testPreferredReplicaLeaderElection`."""
    it = running(TOPICS, {T0: stored(1, 1, 2)})
    carried_out(it, BrokersRead([broker(2)]))
    carried_out(it, BrokersRead([broker(1, 201), broker(2)]))
    it.cluster.stored[T0] = Stored(LeaderAndIsr(2, 1, (2, 1)), EPOCH, 9)  # the leader has taken it into the ISR
    carried_out(it, PreferredRead([T0]))
    assert it.cluster.stored[T0].leader_and_isr == LeaderAndIsr(1, 2, (2, 1))


@pytest.mark.parametrize("partitions", [[], [TopicPartition("u", 0)], [TopicPartition("t", 7)]])
def test_a_znode_that_asks_for_nothing_that_is_there_goes(partitions: list[TopicPartition]) -> None:
    *logs, last = carried_out(led_by_2(2, 1), PreferredRead(partitions))
    assert last == DropPreferred()
    assert logs[1:] == [Log(f"partition {topic}-{number} does not exist") for topic, number in partitions]


def test_the_znode_goes_if_all_lead_already() -> None:
    found = carried_out(running(TOPICS, {T0: stored(1, 1, 2)}), PreferredRead([T0]))
    assert [each for each in found if not isinstance(each, HandBack)] == [DropPreferred()]


# -- requests -------------------------------------------------------------------------------------


def test_a_client_is_answered_who_leads() -> None:
    it = led_by_2(2, 1)
    assert asked(it, T0) == {T0: 1}
    assert it.cluster.stored[T0].leader_and_isr == LeaderAndIsr(1, 5, (2, 1))
    assert it.cluster.states == {T0: PartitionState.ONLINE}


def test_a_client_is_answered_why_not() -> None:
    topics = {"t": Topic({0: (1, 2), 1: (2, 1)}), "gone": Topic({0: (1, 2)})}
    dying, strange = TopicPartition("gone", 0), TopicPartition("u", 0)
    it = running(topics, {T0: stored(2, 2), T1: stored(2, 2), dying: stored(2, 2, 1)})
    it.handle(DeletionsRead(["gone"]))
    assert asked(it, T0, T1, dying, strange) == {
        T0: NotElected(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            "partition t-0 keeps its leader 2: the preferred replica 1 is not in sync",
        ),
        T1: NotElected(ErrorCode.ELECTION_NOT_NEEDED, None),
        dying: NotElected(ErrorCode.INVALID_TOPIC_EXCEPTION, "partition gone-0 is being deleted"),
        strange: NotElected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition u-0 does not exist"),
    }


def test_an_unclean_election_needs_no_setting_of_the_topic() -> None:
    it = running(TOPICS, {T0: stored(NO_LEADER, 1)}, (2,))
    assert asked(it, T0) == {
        T0: NotElected(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"partition t-0 keeps its leader {NO_LEADER}: the preferred replica 1 is not live",
        )
    }
    assert asked(it, T0, unclean=True) == {T0: 2}
    assert it.cluster.stored[T0].leader_and_isr == LeaderAndIsr(2, 1, (2,), recovering=True)


def test_an_unclean_election_takes_one_of_the_isr_if_it_can() -> None:
    it = running({"t": Topic({0: (1, 2, 3)})}, {T0: stored(3, 3, 2)}, (1, 2))
    assert it.cluster.stored[T0].leader_and_isr.leader == 3  # the offline election is being written
    it.handle(StatesWritten({}, {T0: None}))  # and fails
    assert asked(it, T0, unclean=True) == {T0: 2}
    assert it.cluster.stored[T0].leader_and_isr == LeaderAndIsr(2, 1, (2,))


def test_no_unclean_election_where_somebody_leads_or_nobody_lives() -> None:
    assert asked(led_by_2(2), T0, unclean=True) == {T0: NotElected(ErrorCode.ELECTION_NOT_NEEDED, None)}
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(NO_LEADER, 1)}, (3,))
    assert asked(it, T0, unclean=True) == {
        T0: NotElected(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "partition t-0 has no leader: none of the replicas 1, 2 is live; start one of these brokers",
        )
    }


def test_a_partition_that_has_no_state_yet_gets_its_first_leader() -> None:
    it = machine()
    it.handle(Loaded([], TOPICS, {}))
    assert asked(it, T0) == {
        T0: NotElected(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            "partition t-0 has no leader: none of the replicas 1, 2 is live; start one of these brokers",
        )
    }


# -- what happens meanwhile -----------------------------------------------------------------------


def test_an_election_that_another_writer_was_faster_than_is_tried_again() -> None:
    it = led_by_2(2, 1)
    it.handle(PreferredRead([T0]))
    changed = stored(2, 2, 1, 3, leader_epoch=4, version=10)
    assert it.handle(StatesWritten({}, {T0: changed})) == [WriteStates({T0: (LeaderAndIsr(1, 5, (2, 1, 3)), 10)})]


def test_brokers_are_told_of_an_election_that_had_been_done() -> None:
    """The reply to the first attempt was lost. As in Kafka the preferred leader is elected again, in one more epoch."""
    it = led_by_2(2, 1)
    it.handle(PreferredRead([T0]))
    done = stored(1, 2, 1, leader_epoch=5, version=10)
    (again,) = it.handle(StatesWritten({}, {T0: done}))
    assert again == WriteStates({T0: (LeaderAndIsr(1, 6, (2, 1)), 10)})
    written = stored(1, 2, 1, leader_epoch=6, version=11)
    assert (2, "lead", [(0, 1, 6)]) in brief(it.handle(StatesWritten({T0: written})))


@pytest.mark.parametrize("found", [None, stored(2, 2, 1, controller_epoch=EPOCH + 1, version=10)])
def test_an_election_that_cannot_be_written_is_answered(found: Stored | None) -> None:
    it = led_by_2(2, 1)
    wanted = ElectionAsked([T0], False, lambda _results: None)
    *_, ended = it.handle(wanted)
    assert isinstance(ended, HandBack)
    it.handle(StatesWritten({}, {T0: found}))
    (answer,) = it.handle(ended.stimulus)
    assert isinstance(answer, AnswerElection)
    (why,) = answer.results.values()
    assert isinstance(why, NotElected)
    assert why.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert str(why.message).startswith("partition t-0 keeps its leadership")


def test_a_topic_that_goes_during_its_election_is_answered() -> None:
    it = led_by_2(2, 1)
    *_, ended = it.handle(ElectionAsked([T0], False, lambda _results: None))
    assert isinstance(ended, HandBack)
    it.handle(TopicsRead({}))
    it.handle(TopicRemoved("t"))
    (answer,) = it.handle(ended.stimulus)
    assert isinstance(answer, AnswerElection)
    assert set(answer.results) == {T0}


# -- imbalance ------------------------------------------------------------------------------------


def of_ten(led_by_others: int) -> ControllerMachine:
    """Broker 1 should lead ten partitions, and broker 2 leads some of them."""
    states = {
        TopicPartition("t", each): stored(2 if each < led_by_others else 1, 1, 2, version=each) for each in range(10)
    }
    return running({"t": Topic(dict.fromkeys(range(10), (1, 2)))}, states)


def test_preferred_leaders_are_elected_above_the_percentage_and_not_at_it() -> None:
    assert of_ten(1).handle(ImbalanceDue()) == []
    (found,) = of_ten(2).handle(ImbalanceDue())
    assert isinstance(found, WriteStates)
    assert {each.partition: state.leader for each, (state, _) in found.states.items()} == {0: 1, 1: 1}


def test_imbalance_is_counted_for_each_broker() -> None:
    leaders = {"a": (1, 2), "b": (1, 1), "c": (2, 2), "d": (2, 2), "e": (3, 1)}
    assert imbalanced(leaders, 49) == ["a", "e"]
    assert imbalanced(leaders, 50) == ["e"]
    assert imbalanced(leaders, 100) == []
    assert imbalanced({}, 0) == []


def test_imbalance_is_not_mended_by_replicas_that_may_not_lead() -> None:
    topics = {"t": Topic({0: (1, 2), 1: (1, 2), 2: (3, 2)})}
    it = running(topics, {T0: stored(2, 2), T1: stored(2, 2, 1), TopicPartition("t", 2): stored(2, 2, 3)})
    for found in it.handle(ImbalanceDue()):
        assert isinstance(found, WriteStates)
        assert set(found.states) == {T1}


def test_imbalance_passes_over_topics_that_are_being_deleted() -> None:
    it = led_by_2(2, 1)
    it.handle(DeletionsRead(["t"]))
    assert it.handle(ImbalanceDue()) == []
