"""When the requests of a batch are made, and of what."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from controller_machine import T0, T1, broker, stored

from controller.cluster import Cluster, Topic
from controller.request_batch import RequestBatch
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest


def batch() -> RequestBatch:
    """To tell two brokers of two partitions, of which broker 3, which is gone, has a replica."""
    cluster = Cluster(
        brokers={each: broker(each) for each in (1, 2)},
        topics={"t": Topic({0: (1, 2), 1: (2, 3)})},
        stored={T0: stored(1, 1, 2, leader_epoch=4), T1: stored(2, 2, version=6)},
    )
    it = RequestBatch(cluster, 1, 7)
    it.all_lead_or_follow(cluster.brokers, cluster.stored)
    return it


def _broker_gone(cluster: Cluster) -> None:
    del cluster.brokers[2]


def _broker_leaving(cluster: Cluster) -> None:
    cluster.shutting_down.add(2)


def _disk_failed(cluster: Cluster) -> None:
    cluster.failed[1] = {T0}


def _other_leader(cluster: Cluster) -> None:
    cluster.store(T0, stored(2, 2, leader_epoch=5, version=1))


def _topic_grown(cluster: Cluster) -> None:
    cluster.topics["t"] = Topic({0: (2, 1), 1: (2, 3), 2: (1, 2)})


def _topic_deleting(cluster: Cluster) -> None:
    cluster.deleting.add("t")


def _topic_gone(cluster: Cluster) -> None:
    del cluster.topics["t"]
    cluster.stored.clear()


@pytest.mark.parametrize(
    "change",
    [
        _broker_gone,
        _broker_leaving,
        _disk_failed,
        _other_leader,
        _topic_grown,
        _topic_deleting,
        _topic_gone,
    ],
)
def test_metadata_that_are_made_later_are_those_of_the_batch(change: Callable[[Cluster], None]) -> None:
    at_once = [each.request for each in batch().requests()]
    it = batch()
    sent = it.requests()
    change(it.cluster)
    assert [each.request for each in sent] == at_once
    assert [type(each) for each in at_once] == [LeaderAndIsrRequest] * 2 + [UpdateMetadataRequest] * 2


def test_a_batch_after_the_change_has_other_metadata() -> None:
    """So the test above could fail."""
    for change in (_broker_gone, _broker_leaving, _disk_failed, _other_leader, _topic_deleting):
        it = batch()
        before = it.requests()[-1].request
        change(it.cluster)
        assert it.requests()[-1].request != before


def test_brokers_share_metadata() -> None:
    one, other = [each.request for each in batch().requests()[2:]]
    assert isinstance(one, UpdateMetadataRequest)
    assert isinstance(other, UpdateMetadataRequest)
    assert one.topic_states is other.topic_states
    assert (one.broker_epoch, other.broker_epoch) == (101, 102)


def test_a_replica_that_is_new_stays_new_among_many() -> None:
    it = batch()
    it.lead_or_follow([2], T0, is_new=True)
    it.all_lead_or_follow(it.cluster.brokers, it.cluster.stored)
    found = {}
    for each in it.requests():
        if isinstance(each.request, LeaderAndIsrRequest):
            states = [state for topic in each.request.topic_states for state in topic.partition_states]
            found[each.broker_id] = [(state.partition_index, state.is_new) for state in states]
    assert found == {1: [(0, False)], 2: [(0, True), (1, False)]}


def test_only_failed_replicas_of_its_partitions_are_kept_for_later() -> None:
    it = batch()
    it.cluster.failed = {1: {T0, TopicPartition("other", 0)}, 2: {TopicPartition("other", 0)}}
    assert it._as_it_is().failed == {1: {T0}}
