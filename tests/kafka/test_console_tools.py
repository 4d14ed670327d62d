"""The command-line tools of Kafka 3.9.1, unmodified, on a broker of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_process import ClusterProcess
from console_tools import fetched, said, tool

from rebalance_lab.world.kafka import jars

pytestmark = pytest.mark.kafka

TOPICS = "org.apache.kafka.tools.TopicCommand"  # kafka-topics.sh
CONFIGS = "kafka.admin.ConfigCommand"  # kafka-configs.sh
PRODUCER = "kafka.tools.ConsoleProducer"  # kafka-console-producer.sh
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"  # kafka-console-consumer.sh


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    fetched(jars.Role.TOOLS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, tools: None) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def test_topics_are_created_grown_and_deleted(cluster: ClusterProcess) -> None:
    create = ("--create", "--topic", "t", "--partitions", "3", "--replication-factor", "1")
    assert said(cluster, TOPICS, *create) == ["Created topic t."]
    again = tool(cluster, TOPICS, *create)
    assert again.returncode == 1
    assert "already exists" in again.stdout
    assert said(cluster, TOPICS, "--alter", "--topic", "t", "--partitions", "4") == []
    fewer = tool(cluster, TOPICS, "--alter", "--topic", "t", "--partitions", "2")
    assert fewer.returncode == 1
    assert "t" in said(cluster, TOPICS, "--list")
    said(cluster, TOPICS, "--delete", "--topic", "t")
    assert "t" not in said(cluster, TOPICS, "--list")


def test_settings_are_described_and_altered(cluster: ClusterProcess) -> None:
    create = ("--create", "--topic", "settings", "--partitions", "2", "--replication-factor", "1")
    said(cluster, TOPICS, *create, "--config", "retention.ms=1000")
    described = said(cluster, TOPICS, "--describe", "--topic", "settings")
    assert "Configs: retention.ms=1000" in described[0]
    assert len(described) == 3
    entity = ("--entity-type", "topics", "--entity-name", "settings")
    change = ("--add-config", "segment.bytes=4096,cleanup.policy=[delete,compact]", "--delete-config", "retention.ms")
    said(cluster, CONFIGS, "--alter", *entity, *change)
    (_, *settings) = said(cluster, CONFIGS, "--describe", *entity)
    assert [each.split()[0] for each in settings] == ["cleanup.policy=delete,compact", "segment.bytes=4096"]
    wrong = tool(cluster, CONFIGS, "--alter", *entity, "--add-config", "segment.bytes=1")
    assert wrong.returncode == 1
    assert "Value must be at least 14" in wrong.stdout + wrong.stderr
    broker = said(cluster, CONFIGS, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert any(each.strip().startswith("broker.id=1 ") for each in broker)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_the_console_producer_writes_the_console_consumer_reads(cluster: ClusterProcess, compression: str) -> None:
    """Idempotent and with acks=all, as the console producer is by default."""
    topic = f"console-{compression}"
    lines = [f"{each}:value {each} ü" for each in range(500)]
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:", "--compression-codec", compression)
    assert said(cluster, PRODUCER, "--topic", topic, *keyed, lines="\n".join(lines) + "\n") == []
    shown = ("--property", "print.key=true", "--property", "key.separator=:", "--timeout-ms", "30000")
    partition = ("--topic", topic, "--partition", "0")
    assert said(cluster, CONSUMER, *partition, "--offset", "earliest", "--max-messages", "500", *shown) == lines
    assert said(cluster, CONSUMER, *partition, "--offset", "400", "--max-messages", "100", *shown) == lines[400:]
