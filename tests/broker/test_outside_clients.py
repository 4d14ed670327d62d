"""Clients that nobody here wrote, unmodified, on a broker of ours: what they write comes back byte for byte."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from cluster_process import ClusterProcess
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import KafkaError

from rebalance_lab.wire.kafka.records import batches

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = (0, 1, -1)
LIMIT_S = 30

#: Set in CI: there nothing is skipped in silence.
KCAT_REQUIRED = "REBALANCE_LAB_REQUIRE_KCAT"


#: Of most records: recent, as retention goes by it, and no whole second.
TIMESTAMP_MS = int(time.time()) * 1000 - 60_000 + 123


@dataclass(frozen=True)
class Sent:
    """What comes back of a record."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp_ms: int = TIMESTAMP_MS


#: Empty, binary and long values, and none; without and with a key; headers in an order and with a name twice; times
#: that go back.
RECORDS = [
    Sent(None, b""),
    Sent(b"", b"\x00\xff\r\n"),
    Sent(b"key", b"x" * 100_000),
    Sent(b"tombstone", None),
    Sent(b"headers", b"v", (("b", b"2"), ("a", b""), ("b", b"\x00\xff"))),
    *(Sent(str(each).encode(), str(each).encode() * 50, timestamp_ms=TIMESTAMP_MS - each) for each in range(50)),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def bootstrap(cluster: ClusterProcess) -> str:
    return cluster.bootstrap


def topic_of(client: str, compression: str, acks: int) -> str:
    return f"{client}-{compression}-{acks}"


def librdkafka(bootstrap: str, **settings: Any) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "socket.timeout.ms": 10_000, **settings}


def assert_compressed(cluster: ClusterProcess, topic: str, compression: str) -> None:
    """Batches are stored as the client was told to compress them. Clients leave some plain, which would grow; one that
    takes the broker for an old one leaves all."""
    log = cluster.folder / "broker-1" / f"{topic}-0" / f"{0:020d}.log"
    stored = {header.compression.name.lower() for _, header in batches(log.read_bytes())}
    assert compression in stored
    assert stored <= {compression, "none"}


# -- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", ACKS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_confluent_kafka(cluster: ClusterProcess, bootstrap: str, compression: str, acks: int) -> None:
    topic, failed = topic_of("librdkafka", compression, acks), []
    producer = confluent_kafka.Producer(librdkafka(bootstrap, acks=acks, **{"compression.type": compression}))
    for each in RECORDS:
        producer.produce(
            topic,
            each.value,
            each.key,
            partition=0,
            timestamp=each.timestamp_ms,
            headers=list(each.headers),
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(LIMIT_S) == 0
    assert failed == []
    assert read_by_librdkafka(bootstrap, topic, len(RECORDS)) == RECORDS
    assert_compressed(cluster, topic, compression)


def read_by_librdkafka(bootstrap: str, topic: str, count: int) -> list[Sent]:
    consumer = confluent_kafka.Consumer(librdkafka(bootstrap, **{"group.id": "none", "enable.auto.commit": False}))
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        found: list[Sent] = []
        give_up = time.monotonic() + LIMIT_S
        while len(found) < count and time.monotonic() < give_up:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                headers = tuple(message.headers() or ())
                found.append(Sent(message.key(), message.value(), headers, message.timestamp()[1]))
        partition = confluent_kafka.TopicPartition(topic, 0)
        assert consumer.get_watermark_offsets(partition, timeout=LIMIT_S) == (0, count), "there is more"
        return found
    finally:
        consumer.close()


def send(producer: KafkaProducer, topic: str, record: Sent) -> None:
    producer.send(
        topic,
        record.value,
        record.key,
        partition=0,
        timestamp_ms=record.timestamp_ms,
        headers=list(record.headers),
    )


@pytest.mark.parametrize("acks", ACKS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_kafka_python(cluster: ClusterProcess, bootstrap: str, compression: str, acks: int) -> None:
    topic = topic_of("python", compression, acks)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all" if acks < 0 else acks,
        enable_idempotence=acks < 0,  # as it is by default
        compression_type=None if compression == "none" else compression,
    )
    for each in RECORDS:
        send(producer, topic, each)
    producer.flush(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=LIMIT_S * 1000)
    partition = PythonPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = [
        Sent(message.key, message.value, tuple(message.headers), message.timestamp)
        for _, message in zip(RECORDS, consumer, strict=False)
    ]
    assert consumer.end_offsets([partition]) == {partition: len(RECORDS)}
    consumer.close()
    assert found == RECORDS
    assert_compressed(cluster, topic, compression)


@pytest.mark.parametrize("acks", ACKS)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_aiokafka(cluster: ClusterProcess, bootstrap: str, compression: str, acks: int) -> None:
    topic = topic_of("aiokafka", compression, acks)

    async def there_and_back() -> list[Sent]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all" if acks < 0 else acks,
            enable_idempotence=acks < 0,
            compression_type=None if compression == "none" else compression,
        )
        await producer.start()
        for each in RECORDS:
            await producer.send(
                topic, each.value, each.key, partition=0, timestamp_ms=each.timestamp_ms, headers=list(each.headers)
            )
        await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        consumer.assign([AioPartition(topic, 0)])
        consumer.seek(AioPartition(topic, 0), 0)
        found: list[Sent] = []
        while len(found) < len(RECORDS):
            message = await asyncio.wait_for(consumer.getone(), LIMIT_S)
            found.append(Sent(message.key, message.value, tuple(message.headers), message.timestamp))
        assert await consumer.end_offsets([AioPartition(topic, 0)]) == {AioPartition(topic, 0): len(RECORDS)}
        await consumer.stop()
        return found

    assert asyncio.run(there_and_back()) == RECORDS
    assert_compressed(cluster, topic, compression)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_kcat(cluster: ClusterProcess, bootstrap: str, compression: str) -> None:
    command = shutil.which("kcat")
    if command is None:
        (pytest.fail if os.environ.get(KCAT_REQUIRED) else pytest.skip)("kcat is not installed (apt-get install kcat)")
    topic = topic_of("kcat", compression, -1)
    lines = "".join(f"{each}:value {each}\n" for each in range(200)).encode()
    asked = [command, "-b", bootstrap, "-t", topic, "-p", "0", "-K", ":"]
    subprocess.run([*asked, "-P", "-z", compression], input=lines, check=True, timeout=LIMIT_S)
    read = subprocess.run([*asked, "-C", "-e", "-q"], capture_output=True, check=True, timeout=LIMIT_S)
    assert read.stdout == lines
    assert_compressed(cluster, topic, compression)


def test_what_one_client_writes_the_others_read(bootstrap: str) -> None:
    """Idempotent, which kafka-python is by default."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type="zstd")
    for each in RECORDS:
        send(producer, "shared", each)
    producer.close()
    assert read_by_librdkafka(bootstrap, "shared", len(RECORDS)) == RECORDS


# -- topics, offsets, errors ----------------------------------------------------------------------


def test_topics_by_the_admin_of_librdkafka(bootstrap: str) -> None:
    admin = AdminClient(librdkafka(bootstrap))
    outcome(admin.create_topics([NewTopic("admin", 3, 1)])["admin"].result)
    assert set(admin.list_topics("admin", timeout=LIMIT_S).topics["admin"].partitions) == {0, 1, 2}
    assert "already exists" in outcome(admin.create_topics([NewTopic("admin", 3, 1)])["admin"].result)
    assert "larger than available brokers" in outcome(admin.create_topics([NewTopic("b", 1, 9)])["b"].result)
    outcome(admin.delete_topics(["admin"])["admin"].result)
    assert "admin" not in admin.list_topics(timeout=LIMIT_S).topics


def test_topics_by_the_admin_of_kafka_python(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([PythonTopic("admin-python", 2, 1)])
    assert "admin-python" in admin.list_topics()
    with pytest.raises(KafkaError):
        admin.create_topics([PythonTopic("admin-python", 2, 1)])
    admin.delete_topics(["admin-python"])
    assert "admin-python" not in admin.list_topics()
    admin.close()


def test_settings_by_the_admin_of_librdkafka(bootstrap: str) -> None:
    admin = AdminClient(librdkafka(bootstrap))
    created = admin.create_topics([NewTopic("settings", 1, 1, config={"retention.ms": "1000"})])["settings"]
    assert outcome(created.result) == ""
    assert topic_settings(admin) == {"retention.ms": "1000"}
    changed = ConfigResource(
        ResourceType.TOPIC,
        "settings",
        incremental_configs=[
            ConfigEntry("segment.bytes", "4096", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    assert outcome(admin.incremental_alter_configs([changed])[changed].result) == ""
    kept = {"retention.ms": "1000", "segment.bytes": "4096", "cleanup.policy": "delete,compact"}
    assert topic_settings(admin) == kept
    for value, says in (("2000", ""), ("-1", "Value must be at least 0")):
        replaced = ConfigResource(ResourceType.TOPIC, "settings", set_config={"max.message.bytes": value})
        with pytest.deprecated_call():
            futures = admin.alter_configs([replaced])
        assert says in outcome(futures[replaced].result)
        assert topic_settings(admin) == {"max.message.bytes": "2000"}
    broker = ConfigResource(ResourceType.BROKER, "1")
    assert admin.describe_configs([broker])[broker].result(LIMIT_S)["broker.id"].value == "1"


def topic_settings(admin: AdminClient) -> dict[str, str]:
    """What the topic overrides."""
    asked = ConfigResource(ResourceType.TOPIC, "settings")
    found = admin.describe_configs([asked])[asked].result(LIMIT_S)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in found.items() if entry.source == own}


def test_settings_by_the_admin_of_kafka_python(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([PythonTopic("settings-python", 1, 1)])
    for incremental, name, value in ((True, "retention.ms", "1000"), (False, "segment.bytes", "4096")):
        wanted = PythonResource("TOPIC", "settings-python", {name: value})
        admin.alter_configs([wanted], incremental=incremental)
        found = admin.describe_configs([PythonResource("TOPIC", "settings-python")])
        assert found["topic"]["settings-python"][name]["value"] == value
    admin.close()


def outcome(result: Callable[[], object]) -> str:
    """What an admin's future comes to: nothing, or its error."""
    try:
        result()
    except (confluent_kafka.KafkaException, KafkaError) as error:
        return str(error)
    return ""


def test_offsets_by_time_and_seek(bootstrap: str) -> None:
    producer = confluent_kafka.Producer(librdkafka(bootstrap))
    for each in range(10):
        producer.produce("timed", str(each), partition=0, timestamp=1_000 + each * 1_000)
        producer.flush(LIMIT_S)  # a batch for each
    consumer = confluent_kafka.Consumer(librdkafka(bootstrap, **{"group.id": "none", "enable.auto.commit": False}))
    asked = [confluent_kafka.TopicPartition("timed", 0, time_ms) for time_ms in (0, 4_500, 99_000)]
    found = [consumer.offsets_for_times([each], timeout=LIMIT_S)[0].offset for each in asked]
    assert found == [0, 4, confluent_kafka.OFFSET_END]
    assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition("timed", 0), timeout=LIMIT_S) == (0, 10)
    consumer.assign([confluent_kafka.TopicPartition("timed", 0, 7)])
    assert next_value(consumer) == b"7"
    consumer.seek(confluent_kafka.TopicPartition("timed", 0, 2))
    assert next_value(consumer) == b"2"
    consumer.close()


def next_value(consumer: confluent_kafka.Consumer) -> bytes | None:
    message = consumer.poll(LIMIT_S)
    assert message is not None
    assert message.error() is None
    return message.value()


def test_what_does_not_exist(bootstrap: str) -> None:
    producer = confluent_kafka.Producer(librdkafka(bootstrap, **{"message.timeout.ms": 5_000}))
    producer.produce("timed-too", b"x", partition=0)
    producer.flush(LIMIT_S)
    with pytest.raises(confluent_kafka.KafkaException, match="Unknown partition"):
        producer.produce("timed-too", b"x", partition=7)
    consumer = confluent_kafka.Consumer(
        librdkafka(bootstrap, **{"group.id": "none", "auto.offset.reset": "error", "enable.auto.commit": False})
    )
    consumer.assign([confluent_kafka.TopicPartition("timed-too", 0, 500)])
    message = consumer.poll(LIMIT_S)
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    consumer.close()


# -- a broker that dies and comes back ------------------------------------------------------------


@pytest.mark.slow
def test_clients_go_on_after_a_broker_was_killed(tmp_path) -> None:
    """kill -9 between writes: what was acknowledged is there, and the client connects again by itself."""
    with ClusterProcess(tmp_path) as running:
        delivered: list[bytes] = []
        producer = confluent_kafka.Producer(
            librdkafka(running.bootstrap, **{"message.timeout.ms": 60_000, "reconnect.backoff.max.ms": 500})
        )

        def acknowledged(error: object, message: confluent_kafka.Message) -> None:
            if error is None:
                delivered.append(message.value() or b"")

        for each in range(300):
            producer.produce("t", str(each), partition=0, on_delivery=acknowledged)
            if each == 100:
                producer.flush(LIMIT_S)
                running.kill_broker()
                running.start_broker()
        assert producer.flush(60) == 0
        assert delivered == [str(each).encode() for each in range(300)]
        assert [each.value for each in read_by_librdkafka(running.bootstrap, "t", 300)] == delivered
