"""Kafka's tools that give partitions other replicas, on three brokers of ours: 3.9.1 asks, 0.8.2.2 writes a znode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_process import ClusterProcess
from console_tools import fetched, java, said, tool, until
from kazoo.client import KazooClient

from rebalance_lab.wire.cluster import TopicAssignment, read_assignment, read_state
from rebalance_lab.wire.paths import REASSIGNMENT, partition_state_path, topic_path
from rebalance_lab.world.kafka import jars

pytestmark = pytest.mark.kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"  # kafka-topics.sh
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"  # kafka-reassign-partitions.sh
REASSIGN_0_8_2 = "kafka.admin.ReassignPartitionsCommand"


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    fetched(jars.Role.TOOLS)
    fetched(jars.Role.CONSUMER)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[ClusterProcess]:
    with ClusterProcess(
        tmp_path_factory.mktemp("cluster"), "--set", "replica.lag.time.max.ms=3000", brokers=3
    ) as running:
        yield running


def assignment(zookeeper: KazooClient, topic: str) -> TopicAssignment:
    return read_assignment(topic, zookeeper.get(topic_path(topic))[0])


def is_on(zookeeper: KazooClient, topic: str, *replicas: int) -> bool:
    """Whether these are its replicas, all are in sync, and nothing is left to do."""
    found = assignment(zookeeper, topic)
    state = read_state(topic, 0, zookeeper.get(partition_state_path(topic, 0))[0])
    moved = found.replicas == {0: replicas} and not found.adding_replicas and not found.removing_replicas
    return moved and set(state.isr) == set(replicas) and zookeeper.exists(REASSIGNMENT) is None


@pytest.fixture
def topic(cluster: ClusterProcess, zookeeper: KazooClient, request: pytest.FixtureRequest) -> str:
    """One partition on brokers 1 and 2."""
    name = f"t-{request.node.name.replace('_', '-')}"[:60]
    said(cluster, TOPICS, "--create", "--topic", name, "--replica-assignment", "1:2")
    until(lambda: is_on(zookeeper, name, 1, 2), "the topic")
    return name


def wanted(folder: Path, topic: str, *replicas: int) -> str:
    path = folder / "wanted.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": list(replicas)}]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_kafka_reassign_partitions_moves_verifies_and_lists(
    cluster: ClusterProcess, zookeeper: KazooClient, topic: str, tmp_path: Path
) -> None:
    plan = ("--reassignment-json-file", wanted(tmp_path, topic, 2, 3))
    started = " ".join(said(cluster, REASSIGN, "--execute", *plan))
    assert "Successfully started partition reassignment" in started
    until(lambda: is_on(zookeeper, topic, 2, 3), "the new replicas")
    assert f"Reassignment of partition {topic}-0 is completed." in said(cluster, REASSIGN, "--verify", *plan)
    assert said(cluster, REASSIGN, "--list") == ["No partition reassignments found."]
    described = " ".join(said(cluster, TOPICS, "--describe", "--topic", topic))
    assert "Replicas: 2,3" in described


def test_kafka_reassign_partitions_takes_back_what_waits_for_a_dead_broker(
    cluster: ClusterProcess, zookeeper: KazooClient, topic: str, tmp_path: Path
) -> None:
    """Broker 1 is live when it is asked for, and dies before it has caught up."""
    plan = ("--reassignment-json-file", wanted(tmp_path, topic, 2, 3))
    said(cluster, REASSIGN, "--execute", *plan)
    until(lambda: is_on(zookeeper, topic, 2, 3), "the new replicas")
    cluster.kill_broker()
    try:
        until(lambda: zookeeper.exists("/brokers/ids/1") is None, "the death of broker 1")
        back = ("--reassignment-json-file", wanted(tmp_path, topic, 1, 2))
        refused = tool(cluster, REASSIGN, "--execute", *back)
        assert refused.returncode == 1
        zookeeper.create(REASSIGNMENT, Path(back[1]).read_bytes())
        until(lambda: assignment(zookeeper, topic).replicas == {0: (1, 2, 3)}, "the wait for broker 1")
        (listed,) = [each for each in said(cluster, REASSIGN, "--list") if topic in each]
        assert "replicas: 1,2,3. adding: 1. removing: 3." in listed
        said(cluster, REASSIGN, "--cancel", "--preserve-throttles", *back)  # not to ask the dead broker for them
        until(lambda: is_on(zookeeper, topic, 2, 3), "the old replicas")
    finally:
        cluster.start_broker()


def test_the_command_of_0_8_2_creates_a_znode_that_goes(
    cluster: ClusterProcess, zookeeper: KazooClient, topic: str, tmp_path: Path
) -> None:
    connect = ("--zookeeper", cluster.zookeeper.connect_string)
    plan = ("--reassignment-json-file", wanted(tmp_path, topic, 3, 1))
    done = java(jars.Role.CONSUMER, REASSIGN_0_8_2, *connect, *plan, "--execute")
    assert "Successfully started reassignment of partitions" in done.stdout, done.stdout + done.stderr
    until(lambda: is_on(zookeeper, topic, 3, 1), "the new replicas")
    verified = java(jars.Role.CONSUMER, REASSIGN_0_8_2, *connect, *plan, "--verify")
    assert f"Reassignment of partition [{topic},0] completed successfully" in verified.stdout, verified.stdout
