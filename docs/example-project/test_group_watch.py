"""Its integration tests, on a real ensemble, real consumers and real faults."""

from __future__ import annotations

import time

from group_watch import unowned
from kazoo.client import KazooClient, KazooState


def watched(group):
    return unowned(group.connect_string, group.settings.group, group.settings.topic, group.settings.partitions)


def test_a_settled_group_owns_everything(consumer_group):
    group = consumer_group(members=2, partitions=4)
    owners = group.wait_until_settled()
    assert sorted(owners) == [0, 1, 2, 3]
    assert group.partitions_of("m1") == (0, 1)
    assert watched(group) == []


def test_a_killed_consumer_leaves_partitions_alone_until_its_session_ends(consumer_group):
    group = consumer_group(members=2, partitions=4)
    group.wait_until_settled()
    group.kill("m1")
    assert watched(group) == [], "its owner znodes live as long as its session"
    owners = group.wait_until_settled()
    assert set(owners.values()) == {f"{group.consumer_ids()[0]}-0"}


def test_a_zombie_comes_back_as_a_member(consumer_group):
    group = consumer_group(members=2, partitions=4)
    group.wait_until_settled()
    group.pause("m1")
    group.wait_until_settled()
    assert group.partitions_of("m1") == (), "its session has ended, and m2 has everything"
    group.resume("m1")
    group.wait_until_settled()
    assert len(group.partitions_of("m1")) == 2


def test_the_tool_survives_the_leader(zookeeper_ensemble, zookeeper_faults, consumer_group):
    group = consumer_group(members=1, partitions=2, session_timeout_ms=6000)
    group.wait_until_settled()
    leader = zookeeper_ensemble.leader()
    zookeeper_faults.kill(leader)
    assert watched(group) == []
    zookeeper_faults.start(leader)
    assert zookeeper_ensemble.leader() != leader


def test_a_session_that_expires_behind_its_back(zookeeper_ensemble, zookeeper_faults):
    client = KazooClient(zookeeper_ensemble.connect_string, timeout=4)
    states = []
    client.add_listener(states.append)
    client.start(timeout=30)
    zookeeper_faults.expire(*client.client_id)
    give_up = time.monotonic() + 30
    while KazooState.LOST not in states and time.monotonic() < give_up:
        time.sleep(0.05)
    client.stop()
    client.close()
    assert KazooState.LOST in states
