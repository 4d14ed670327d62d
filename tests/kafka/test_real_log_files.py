"""Files of logs, ours read by Kafka 3.9.1 and Kafka's read by us."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as Place
from kazoo.client import KazooClient

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.checkpoints import MetaProperties, read_meta
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.records import Compression, Record, batches, build_batch, records
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.jars import Role
from rebalance_lab.world.kafka.jvm import JavaProgram
from rebalance_lab.world.live.environment import LiveClock
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.storage import LiveStorage

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

Story = Callable[[LogManager], Awaitable[None]]

LOG = TopicPartition("t1", 0)
NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=16_384, segment_index_bytes=4096, index_interval_bytes=512, retention_ms=-1)
NEW = MetaProperties(cluster_id="vPeOCWypqUOSepEvx0cbog", broker_id=1)


def on_our_broker(
    folder: Path, story: Callable[[LogManager], Awaitable[None]], owner: MetaProperties = NEW
) -> list[str]:
    """Run a life of our log manager on a folder. Returns its warnings."""
    warnings: list[str] = []
    with LiveKernel() as live:
        storage = LiveStorage(live.kernel, live.loop, folder)
        live.on_close(storage.close)
        clock = LiveClock(live.kernel)
        manager = LogManager(live.kernel, storage, clock, RandomStream(0, "b1", "names"), warn=warnings.append)

        async def told() -> None:
            await manager.start(owner, lambda _: SMALL)
            await story(manager)
            await manager.close()

        live.run(told())
    return warnings


async def append_some(log: PartitionLog, first: int, count: int, epoch: int) -> None:
    for n in range(first, first + count):
        found = [Record(b"k", b"%05d " % n + b"x" * 40, NOW_MS + n) for _ in range(3)]
        data = build_batch(
            found, compression=Compression(n % 5), producer_id=900, producer_epoch=0, base_sequence=3 * (n - first)
        )
        await log.append(data, epoch + n // 100)


async def values_of(log: PartitionLog) -> list[bytes]:
    found: list[bytes] = []
    offset = log.start_offset
    while offset < log.end_offset:
        data = (await log.read(offset, 100_000)).data
        for at, header in batches(data):
            if not header.control:
                found += [record.value or b"" for record in records(data, at)]
            offset = header.last_offset + 1
    return found


def test_kafkas_own_dump_finds_nothing_wrong_with_our_files(tmp_path: Path) -> None:
    async def story(manager: LogManager) -> None:
        await append_some(await manager.create(LOG, SMALL), 0, 600, 0)

    assert on_our_broker(tmp_path / "data", story) == []
    folder = tmp_path / "data" / "t1-0"
    files = sorted(file for file in folder.iterdir() if file.suffix in (".log", ".index", ".timeindex", ".snapshot"))
    assert len([file for file in files if file.suffix == ".log"]) > 3
    dump = JavaProgram(
        Role.BROKER,
        "kafka.tools.DumpLogSegments",
        ["--deep-iteration", "--files", ",".join(map(str, files))],
        folder=tmp_path / "dump",
        name="dump",
        heap_mb=128,
    )
    dump.popen.wait(60)
    said = dump.out.read_text()
    assert dump.popen.returncode == 0, said
    for wrong in ("isvalid: false", "Mismatch", "mismatch", "Non-consecutive", "out of order", "Found", "Exception"):
        assert wrong not in said, [line for line in said.splitlines() if wrong in line][:5]
    assert said.count("isvalid: true") == 600
    assert said.count("| offset: ") == 1800
    assert "producerId: 900" in said


@contextmanager
def real_broker(zookeeper: str, folder: Path) -> Iterator[tuple[KafkaBroker, str]]:
    """Kafka 3.9.1 as broker 1, with its address. It is killed at the end, unless it was stopped."""
    session = KazooClient(zookeeper)
    session.start()
    give_up = time.monotonic() + 60
    while session.exists("/brokers/ids/1"):  # of a life that was killed, until its session expires
        assert time.monotonic() < give_up, "its session does not expire"
        time.sleep(0.05)
    broker = KafkaBroker(1, zookeeper, folder)
    try:
        broker.wait_until_started()
        session.ensure_path("/brokers/topics")
        if not session.exists("/brokers/topics/t1"):
            session.create("/brokers/topics/t1", b'{"version":1,"partitions":{"0":[1]}}')
        registered = json.loads(session.get("/brokers/ids/1")[0])
        yield broker, registered["endpoints"][0].removeprefix("PLAINTEXT://")
    finally:
        broker.kill()
        session.stop()
        session.close()


async def produce(address: str, contents: list[bytes]) -> None:
    for number, compression in enumerate((None, "gzip", "snappy", "lz4", "zstd")):
        producer = AIOKafkaProducer(
            bootstrap_servers=address, compression_type=compression, enable_idempotence=True, request_timeout_ms=60_000
        )
        await producer.start()
        try:
            for content in contents[number::5]:
                await producer.send_and_wait("t1", content, partition=0)
        finally:
            await producer.stop()


async def consume(address: str, count: int) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([Place("t1", 0)])
        await consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < count:
            found.append(await asyncio.wait_for(consumer.getone(), 60))
        return found
    finally:
        await consumer.stop()


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_log_goes_from_kafka_to_us_and_back(tmp_path: Path, clean: bool) -> None:
    contents = [b"%03d " % n + b"y" * 100 for n in range(100)]
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper") as server:
        with real_broker(server.connect_string, tmp_path / "kafka") as (broker, address):
            asyncio.run(produce(address, contents))
            if clean:
                broker.stop()
        data = broker.data_dir
        owner = read_meta((data / "meta.properties").read_bytes())
        assert (data / ".kafka_cleanshutdown").exists() == clean
        kept: list[bytes] = []

        async def story(manager: LogManager) -> None:
            assert manager.unusable == {}
            log = manager.get(LOG)
            assert log is not None
            assert log.end_offset == 100
            kept.extend(await values_of(log))
            await append_some(log, 0, 200, 5)

        assert on_our_broker(data, story, owner) == []
        assert sorted(kept) == sorted(contents)

        with real_broker(server.connect_string, tmp_path / "kafka") as (broker, address):
            found = asyncio.run(consume(address, 700))
            broker.stop()
        assert [record.offset for record in found] == list(range(700))
        assert [record.value for record in found[:100]] == kept
        assert [record.value[:5] for record in found[100::3]] == [b"%05d" % n for n in range(200)]
        assert "corrupt" not in broker.logged().lower()
