"""What the controller decides when topics are to be deleted."""

from __future__ import annotations

import pytest
from controller_machine import (
    T0,
    T1,
    brief,
    broker,
    carried_out,
    machine,
    running,
    stored,
)

from controller.cluster import Topic
from controller.forms import ControllerForm
from controller.request_batch import Send
from controller.stimuli import (
    BrokersRead,
    DeletionsRead,
    DropDeletion,
    Instruction,
    Loaded,
    Log,
    RemoveTopic,
    ReplicasDeleted,
    StatesWritten,
    TopicRemoved,
    TopicsRead,
    WriteAssignments,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest


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
    assert it.handle(ReplicasDeleted(2, [T0])) == [RemoveTopic("t")]


def test_a_new_controller_begins_once_the_brokers_of_all_replicas_are_registered() -> None:
    """`KafkaController.fetchTopicDeletionsInProgress`: a topic with a replica on a dead broker is ineligible."""
    it, topics = machine(), {"t": Topic({0: (1, 2)})}
    found = it.handle(Loaded([broker(1)], topics, {T0: stored(1, 1)}, deletions=["t"]))
    assert [each for each in brief(found) if isinstance(each, tuple) and each[1] == "delete"] == []
    found = it.handle(BrokersRead([broker(1), broker(2)]))
    assert brief(found)[-2:] == [(1, "delete", [(0, -2, True)]), (2, "delete", [(0, -2, True)])]


def test_what_a_broker_could_not_delete_is_tried_again_when_it_comes_back() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1)})
    it.handle(DeletionsRead(["t"]))
    assert it.handle(ReplicasDeleted(2, [T0], failed=[T0])) == []
    assert it.handle(ReplicasDeleted(1, [T0])) == []
    assert it.handle(ReplicasDeleted(2, [T0])) == []  # nobody has asked for it again
    found = carried_out(it, BrokersRead([broker(1), broker(2, epoch=900)]))
    assert [each for each in brief(found) if "delete" in str(each)] == [(2, "delete", [(0, -2, True)])]
    assert it.handle(ReplicasDeleted(2, [T0])) == [RemoveTopic("t")]


def test_a_deletion_waits_for_a_broker_that_dies_during_it() -> None:
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1, 2)})
    it.handle(DeletionsRead(["t"]))
    carried_out(it, BrokersRead([broker(1)]))
    assert it.handle(ReplicasDeleted(1, [T0])) == []
    found = carried_out(it, BrokersRead([broker(1), broker(2, epoch=900)]))
    assert brief(found)[-1] == (2, "delete", [(0, -2, True)])
    assert it.handle(ReplicasDeleted(2, [T0])) == [RemoveTopic("t")]
    assert it.handle(DeletionsRead(["t"])) == []


def test_a_deletion_is_taken_up_once_and_of_topics_that_exist() -> None:
    it = running({"t": Topic({0: (1,)})}, {T0: stored(1, 1)})
    assert it.handle(DeletionsRead(["x"])) == [DropDeletion("x")]
    it.handle(DeletionsRead(["t"]))
    assert it.handle(DeletionsRead(["t"])) == []


@pytest.mark.parametrize(
    ("form", "deletes", "ended"),
    [
        ("2.1", True, [RemoveTopic("x")]),
        ("1.1", True, [RemoveTopic("x")]),
        ("0.8.2", True, []),
        ("2.1", False, [DropDeletion("x")]),
    ],
)
def test_what_a_controller_that_died_has_left_of_a_topic_is_removed(
    form: str, deletes: bool, ended: list[Instruction]
) -> None:
    """Its znodes are gone, and its settings may not be; a later request for it is dropped."""
    it = machine(deletes_topics=deletes, form=ControllerForm(form))
    found = it.handle(Loaded([broker(1)], {}, {}, deletions=["x"]))
    assert [each for each in found if isinstance(each, RemoveTopic | DropDeletion)] == ended
    assert it.handle(TopicRemoved("x")) == []
    assert it.handle(DeletionsRead(["x"])) == [DropDeletion("x")]


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


def test_nothing_is_elected_for_a_topic_that_goes() -> None:
    it = machine()
    found = it.handle(Loaded([broker(1)], {"t": Topic({0: (1,)})}, {}, deletions=["t"]))
    assert brief(found) == [(1, "inform", []), (1, "inform", []), (1, "delete", [(0, -2, True)])]


@pytest.mark.parametrize("form", ControllerForm)
def test_up_to_1_1_a_partition_without_a_state_keeps_its_topic(form: ControllerForm) -> None:
    """KAFKA-6650: an earlier controller has begun to delete the topic's znodes."""
    it = machine(form=form)
    topic = {"t": Topic({0: (1,), 1: (1,)})}
    found = it.handle(Loaded([broker(1)], topic, {T1: stored(1, 1)}, deletions=["t"]))
    said = [each.message for each in found if isinstance(each, Log)]
    if form is ControllerForm.V2_1:
        assert brief(found)[-1] == (1, "delete", [(0, -2, True), (1, -2, True)])
        assert said == []
        assert it.handle(ReplicasDeleted(1, [T0, T1])) == [RemoveTopic("t")]
    else:
        assert (1, "delete", [(1, -2, True)]) in brief(found)
        assert said == ["partition t-0 is to be deleted, and has no state: its topic stays"]
        assert RemoveTopic("t") not in it.handle(ReplicasDeleted(1, [T1]))


@pytest.mark.parametrize("form", ControllerForm)
def test_up_to_1_1_a_topic_that_is_being_deleted_may_grow(form: ControllerForm) -> None:
    """KAFKA-6612. This controller leaves the new partition alone; its successor would find it."""
    it = running({"t": Topic({0: (1, 2)})}, {T0: stored(1, 1)}, brokers=[1], form=form)
    it.handle(DeletionsRead(["t"]))
    undone = [WriteAssignments("t", Topic({0: (1, 2)}), {})] if form is ControllerForm.V2_1 else []
    assert carried_out(it, TopicsRead({"t": Topic({0: (1, 2), 1: (1,)})})) == undone
    assert set(it.cluster.states) == {T0}
    assert carried_out(it, TopicsRead({"t": Topic({0: (1, 2)})})) == []


@pytest.mark.parametrize(
    ("form", "requests"),
    [
        (ControllerForm.V0_8_2, [[0], [1], [2]]),
        (ControllerForm.V1_1, [[], [0], [1], [2]]),
        (ControllerForm.V2_1, [[0, 1, 2]]),
    ],
)
def test_up_to_2_2_each_replica_is_stopped_by_a_request_of_its_own(
    form: ControllerForm, requests: list[list[int]]
) -> None:
    """KAFKA-8294; 0.8.2 groups none either. The form 2.1 groups as 2.3 does."""
    partitions = [TopicPartition("t", each) for each in range(3)]
    topic = Topic({each.partition: (1,) for each in partitions})
    it = running({"t": topic}, {each: stored(1, 1) for each in partitions}, brokers=[1], form=form)
    sent = [each.request for each in it.handle(DeletionsRead(["t"])) if isinstance(each, Send)]
    stops = [each for each in sent if isinstance(each, StopReplicaRequest)]
    named = [
        [state.partition_index for topic in each.topic_states for state in topic.partition_states] for each in stops
    ]
    assert named == requests
    assert it.handle(ReplicasDeleted(1, partitions)) == [RemoveTopic("t")]
