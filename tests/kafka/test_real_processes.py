"""Real Kafka's programs by themselves: started, told from their logs, ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.consumer import ConsoleConsumer
from rebalance_lab.world.kafka.jars import KafkaUnavailable, Role, archive_flags, class_path
from rebalance_lab.world.kafka.log_file import LogFile
from rebalance_lab.world.live.java import java_command
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(200)]

LIMIT_S = 60


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def test_a_broker_and_a_consumer_start_register_and_leave(tmp_path: Path) -> None:
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper") as server:
        session = KazooClient(server.connect_string)
        session.start()
        broker = KafkaBroker(0, server.connect_string, tmp_path / "kafka")
        try:
            broker.wait_until_started()
            assert session.exists("/brokers/ids/0")
            session.create("/brokers/topics/t1", b'{"version":1,"partitions":{"0":[0]}}')
            properties = {"group.id": "g1", "zookeeper.connect": server.connect_string}
            consumer = ConsoleConsumer("t1", properties, folder=tmp_path / "kafka", name="m1")
            try:
                until(lambda: session.exists("/consumers/g1/owners/t1/0") is not None)
                (member,) = session.get_children("/consumers/g1/ids")
                owner, _ = session.get("/consumers/g1/owners/t1/0")
                assert owner.decode() == f"{member}-0"
                consumer.stop()
                assert session.get_children("/consumers/g1/ids") == []
            finally:
                consumer.kill()
            said = [line.message for line in LogFile(consumer.log_file).poll()]
            assert any(message.endswith("ZKConsumerConnector shutting down") for message in said)
        finally:
            broker.kill()
            session.stop()
            session.close()
    assert broker.ended
    assert consumer.ended


@pytest.mark.parametrize(
    ("role", "main"), [(Role.BROKER, "kafka.Kafka"), (Role.CONSUMER, "kafka.tools.ConsoleConsumer")]
)
def test_its_classes_come_from_the_archive(role: Role, main: str) -> None:
    """Without arguments the programs end with their usage."""
    command = [
        java_command(),
        *archive_flags(role),
        "-XX:+UseSerialGC",
        "-Xlog:class+load",
        "-cp",
        class_path(role),
        main,
    ]
    loaded = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout
    (line,) = [each for each in loaded.splitlines() if f" {main} source: " in each]
    assert line.endswith("source: shared objects file (top)")


def test_on_this_java_a_blocked_read_does_not_hold_a_fetcher(tmp_path: Path) -> None:
    """The broker stands still, and with it the read of a fetch: F2 says 30 s, for the Javas of 0.8's day."""
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper") as server:
        session = KazooClient(server.connect_string)
        session.start()
        broker = KafkaBroker(0, server.connect_string, tmp_path / "kafka", session_timeout_ms=10_000)
        consumers = []
        try:
            broker.wait_until_started()
            session.create("/brokers/topics/t1", b'{"version":1,"partitions":{"0":[0]}}')
            properties = {"group.id": "g1", "zookeeper.connect": server.connect_string, "auto.commit.enable": "false"}
            consumer = ConsoleConsumer("t1", properties, folder=tmp_path / "kafka", name="m1")
            consumers.append(consumer)
            until(lambda: "of fetch request" in consumer.logged())
            broker.pause()
            session.create("/consumers/g1/ids/another", b"")  # makes it rebalance, which begins with this stop
            until(lambda: "java.nio.channels.ClosedByInterruptException" in consumer.logged())
            assert "SocketTimeoutException" not in consumer.logged()
        finally:
            for each in (*consumers, broker):
                each.kill()
            session.stop()
            session.close()


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    """A second one in the folder of the first, whose log there says that it has started."""
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper") as server:
        first = KafkaBroker(0, server.connect_string, tmp_path / "kafka")
        try:
            first.wait_until_started()
            second = KafkaBroker(0, server.connect_string, tmp_path / "kafka")
            try:
                why = r"(?s)^broker 0 ended with 1 before it served; .*Failed to acquire lock on file \.lock in "
                with pytest.raises(KafkaUnavailable, match=why):
                    second.wait_until_started()
            finally:
                second.kill()
            assert not first.ended
        finally:
            first.kill()
