"""`TopicCommand` of Kafka 0.8.2.2, which reads and writes ZooKeeper itself, on three brokers of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cluster_process import ClusterProcess
from confluent_kafka import KafkaError, Producer
from console_tools import LIMIT_S, fetched, java, said, until
from kazoo.client import KazooClient

from rebalance_lab.world.kafka import jars

pytestmark = pytest.mark.kafka

TOPICS_0_8_2 = "kafka.admin.TopicCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"  # kafka-topics.sh of 3.9.1
PRODUCER = "kafka.tools.ConsoleProducer"  # kafka-console-producer.sh of 3.9.1
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"  # kafka-console-consumer.sh of 3.9.1

#: Partition, leader, replicas and ISR, as both tools print them.
Described = list[tuple[str, ...]]

ROW = re.compile(r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S+)")


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    fetched(jars.Role.TOOLS)
    fetched(jars.Role.CONSUMER)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster"), brokers=3) as running:
        yield running


def topics(cluster: ClusterProcess, *arguments: str) -> list[str]:
    """The lines that 0.8.2.2's tool prints. It ends with 0 after an error as well, and prints that."""
    done = java(jars.Role.CONSUMER, TOPICS_0_8_2, "--zookeeper", cluster.zookeeper.connect_string, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def rows(lines: list[str]) -> Described:
    return [found.groups() for line in lines if (found := ROW.search(line)) is not None]


def described_by_both(cluster: ClusterProcess, topic: str) -> Described:
    """What 0.8.2.2 finds in ZooKeeper. A broker answers 3.9.1 with the same."""
    in_zookeeper = rows(topics(cluster, "--describe", "--topic", topic))
    assert rows(said(cluster, TOPICS, "--describe", "--topic", topic)) == in_zookeeper
    return in_zookeeper


def until_led(cluster: ClusterProcess, topic: str, partitions: int, replicas: int) -> None:
    """Wait until each partition has a leader, and as many replicas in sync."""

    def led() -> bool:
        found = rows(topics(cluster, "--describe", "--topic", topic))
        return len(found) == partitions and all(
            leader.isdigit() and len(isr.split(",")) == replicas for _, leader, _, isr in found
        )

    until(led, f"the leaders of {topic}")


def test_it_lists_and_describes_our_topics(cluster: ClusterProcess) -> None:
    said(
        cluster,
        TOPICS,
        "--create",
        "--topic",
        "ours",
        "--replica-assignment",
        "1:2,3:1",
        "--config",
        "retention.ms=1000",
    )
    until_led(cluster, "ours", 2, 2)
    assert "ours" in topics(cluster, "--list")
    lines = topics(cluster, "--describe", "--topic", "ours")
    assert lines[0] == "Topic:ours\tPartitionCount:2\tReplicationFactor:2\tConfigs:retention.ms=1000"
    assert [row[:3] for row in rows(lines)] == [("0", "1", "1,2"), ("1", "3", "3,1")]
    assert described_by_both(cluster, "ours") == rows(lines)
    assert rows(topics(cluster, "--describe", "--topic", "ours", "--under-replicated-partitions")) == []


def test_a_topic_that_it_creates_is_led_by_our_brokers(cluster: ClusterProcess) -> None:
    create = ("--create", "--topic", "theirs", "--partitions", "3", "--replication-factor", "2")
    assert topics(cluster, *create) == ['Created topic "theirs".']
    until_led(cluster, "theirs", 3, 2)
    assert len(described_by_both(cluster, "theirs")) == 3
    assert topics(cluster, *create)[0] == 'Error while executing topic command Topic "theirs" already exists.'


def test_a_topic_that_it_creates_is_written_and_read(cluster: ClusterProcess) -> None:
    create = ("--create", "--topic", "written", "--partitions", "1", "--replication-factor", "3")
    topics(cluster, *create, "--config", "segment.bytes=65536")
    until_led(cluster, "written", 1, 3)
    lines = [f"value {each}" for each in range(500)]
    assert said(cluster, PRODUCER, "--topic", "written", lines="\n".join(lines) + "\n") == []
    partition = ("--topic", "written", "--partition", "0", "--offset", "earliest")
    assert said(cluster, CONSUMER, *partition, "--max-messages", "500", "--timeout-ms", "30000") == lines


def test_what_it_alters_reaches_the_brokers(cluster: ClusterProcess) -> None:
    topics(cluster, "--create", "--topic", "altered", "--partitions", "1", "--replication-factor", "3")
    until_led(cluster, "altered", 1, 3)
    assert "Adding partitions succeeded!" in topics(cluster, "--alter", "--topic", "altered", "--partitions", "4")
    until_led(cluster, "altered", 4, 3)
    assert len(described_by_both(cluster, "altered")) == 4
    fewer = topics(cluster, "--alter", "--topic", "altered", "--partitions", "2")
    assert any("The number of partitions for a topic can only be increased" in line for line in fewer)
    assert refusal(cluster, "altered") is None
    change = ("--config", "max.message.bytes=200")
    assert topics(cluster, "--alter", "--topic", "altered", *change) == ['Updated config for topic "altered".']
    until(lambda: refusal(cluster, "altered") == KafkaError.MSG_SIZE_TOO_LARGE, "the setting")


def refusal(cluster: ClusterProcess, topic: str) -> int | None:
    """The error with which the leader of partition 0 refuses a record of 500 bytes; None if it takes it."""
    outcomes: list[int | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(
        topic, bytes(500), partition=0, on_delivery=lambda error, _: outcomes.append(error and error.code())
    )
    assert producer.flush(LIMIT_S) == 0
    (outcome,) = outcomes
    return outcome


def test_a_topic_that_it_deletes_goes(cluster: ClusterProcess, zookeeper: KazooClient) -> None:
    topics(cluster, "--create", "--topic", "gone", "--partitions", "2", "--replication-factor", "2")
    until_led(cluster, "gone", 2, 2)
    folders = [cluster.folder / f"broker-{number}" for number in (1, 2, 3)]
    logs = [each for folder in folders for each in folder.rglob("gone-?")]
    assert len(logs) == 4, [str(each) for folder in folders for each in folder.rglob("*") if each.is_dir()]
    assert topics(cluster, "--delete", "--topic", "gone")[0] == "Topic gone is marked for deletion."
    until(
        lambda: not any(zookeeper.exists(f"{each}/gone") for each in ("/brokers/topics", "/config/topics")), "the end"
    )
    assert zookeeper.get_children("/admin/delete_topics") == []
    assert "gone" not in topics(cluster, "--list")
    until(lambda: not any(each.exists() for each in logs), "the deletion of the logs")
