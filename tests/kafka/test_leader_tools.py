"""Kafka's tools that have preferred replicas lead, on three brokers of ours: 3.9.1 asks, 0.8.2.2 writes a znode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_process import ClusterProcess
from console_tools import fetched, java, said, tool, until
from kazoo.client import KazooClient

from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_state
from rebalance_lab.wire.paths import PREFERRED_ELECTION, partition_state_path
from rebalance_lab.world.kafka import jars

pytestmark = pytest.mark.kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"  # kafka-topics.sh
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"  # kafka-leader-election.sh
ELECTION_0_8_2 = "kafka.admin.PreferredReplicaLeaderElectionCommand"  # kafka-preferred-replica-election.sh


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    fetched(jars.Role.TOOLS)
    fetched(jars.Role.CONSUMER)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[ClusterProcess]:
    settings = ("auto.leader.rebalance.enable=false", "replica.lag.time.max.ms=3000")
    options = [word for each in settings for word in ("--set", each)]
    with ClusterProcess(tmp_path_factory.mktemp("cluster"), *options, brokers=3) as running:
        yield running


def state(zookeeper: KazooClient, topic: str) -> LeaderIsrAndControllerEpoch:
    return read_state(topic, 0, zookeeper.get(partition_state_path(topic, 0))[0])


@pytest.fixture
def led_by_2(cluster: ClusterProcess, zookeeper: KazooClient, request: pytest.FixtureRequest) -> str:
    """A topic whose first replica, on broker 1, bounced: broker 2 leads, and all are in sync again."""
    topic = f"t-{request.node.name.replace('_', '-')}"[:60]
    said(cluster, TOPICS, "--create", "--topic", topic, "--replica-assignment", "1:2:3")
    until(lambda: state(zookeeper, topic).isr == (1, 2, 3), "the topic")
    cluster.kill_broker()
    until(lambda: state(zookeeper, topic).leader == 2, "another leader")
    cluster.start_broker()
    until(lambda: len(state(zookeeper, topic).isr) == 3, "the return of broker 1")
    return topic


def test_kafka_leader_election_moves_the_leadership(
    cluster: ClusterProcess, zookeeper: KazooClient, led_by_2: str
) -> None:
    before = state(zookeeper, led_by_2)
    one = ("--election-type", "preferred", "--topic", led_by_2, "--partition", "0")
    moved = " ".join(said(cluster, ELECTION, *one))
    assert "Successfully completed leader election (PREFERRED)" in moved
    assert f"{led_by_2}-0" in moved
    after = state(zookeeper, led_by_2)
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
    assert "Valid replica already elected" in " ".join(said(cluster, ELECTION, *one))
    assert said(cluster, ELECTION, "--election-type", "preferred", "--all-topic-partitions") == []


def test_kafka_leader_election_says_of_which_partition_it_has_failed(
    cluster: ClusterProcess, zookeeper: KazooClient, led_by_2: str
) -> None:
    cluster.kill_broker()
    until(lambda: 1 not in state(zookeeper, led_by_2).isr, "the death of broker 1")
    failed = tool(cluster, ELECTION, "--election-type", "preferred", "--topic", led_by_2, "--partition", "0")
    cluster.start_broker()
    assert failed.returncode == 1
    assert (
        f"partition {led_by_2}-0 keeps its leader 2: the preferred replica 1 is not live"
        in failed.stdout + failed.stderr
    )


def test_the_command_of_0_8_2_creates_a_znode_that_goes(
    cluster: ClusterProcess, zookeeper: KazooClient, led_by_2: str, tmp_path: Path
) -> None:
    before = state(zookeeper, led_by_2)
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": led_by_2, "partition": 0}]}))
    connect = cluster.zookeeper.connect_string
    done = java(jars.Role.CONSUMER, ELECTION_0_8_2, "--zookeeper", connect, "--path-to-json-file", str(wanted))
    assert "Successfully started preferred replica election" in done.stdout, done.stdout + done.stderr
    until(lambda: zookeeper.exists(PREFERRED_ELECTION) is None, "the end of the election")
    after = state(zookeeper, led_by_2)
    assert (after.leader, after.leader_epoch) == (1, before.leader_epoch + 1)
