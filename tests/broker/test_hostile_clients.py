"""Clients that send what they may not: their connections are closed with a reason, and the broker lives on."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import psutil
import pytest
from broker_stage import BrokerStage
from cluster_process import ClusterProcess
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from hostile_frames import frame, with_length
from thorough import usual

from rebalance_lab.broker.server import REPORT_PERIOD_S, REPORTED_EACH
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import Connection, NetworkError, RequestTimedOut

#: Requests of the fuzz may ask the broker to wait for longer than this.
PATIENCE_US = 50_000


class Raw:
    """A codec of one connection that sends bytes as they are."""

    malformed = (ValueError,)

    def __init__(self) -> None:
        self._last = 0

    def encode_request(self, correlation_id: int, request: bytes) -> bytes:
        self._last = correlation_id
        return request

    def decode_reply(self, _request: bytes, frame: bytes) -> tuple[int, bytes]:
        return self._last, frame

    def decode_request(self, frame: bytes) -> tuple[int, bytes]:
        raise AssertionError("a client decodes no request")

    def encode_reply(self, correlation_id: int, request: bytes, reply: bytes) -> bytes:
        raise AssertionError("a client encodes no reply")


def test_a_broker_answers_or_closes_whatever_it_is_sent() -> None:
    chance = random.Random(12)

    async def story(stage: BrokerStage) -> None:
        ends = {"answered": 0, "closed": 0, "waits": 0}
        for _ in range(3000):
            connection = await stage.connect(Raw())
            try:
                await connection.request(frame(chance), timeout_us=PATIENCE_US)
                ends["answered"] += 1
            except RequestTimedOut:
                ends["waits"] += 1
            except NetworkError:
                ends["closed"] += 1
            connection.close()
        assert min(ends["answered"], ends["closed"]) > 500, ends
        assert await _serves(stage)
        await stage.tasks.sleep(REPORT_PERIOD_S * 1_000_000)
        one_by_one = len(stage.said("connection closed"))
        summed_up = sum(each["number"] for each in stage.said("connections closed"))  # type: ignore[misc]
        assert one_by_one + summed_up == ends["closed"]
        assert one_by_one <= REPORTED_EACH * (1 + stage.tasks.now_us() // (REPORT_PERIOD_S * 1_000_000))

    BrokerStage().play(story)


async def _serves(stage: BrokerStage) -> bool:
    found = await stage.ask(MetadataRequest(topics=()), 9)
    return [each.node_id for each in found.brokers] == [1]


def test_a_flood_of_closed_connections_is_reported_as_a_number() -> None:
    async def story(stage: BrokerStage) -> None:
        for _ in range(REPORTED_EACH + 25):
            connection = await stage.connect(Raw())
            with pytest.raises(NetworkError):
                await connection.request(b"\xff", timeout_us=1_000_000)
        assert len(stage.said("connection closed")) == REPORTED_EACH
        assert all("cannot be read" in str(each["why"]) for each in stage.said("connection closed"))
        await stage.tasks.sleep(REPORT_PERIOD_S * 1_000_000)
        (summary,) = stage.said("connections closed")
        assert summary["number"] == 25
        assert "cannot be read" in str(summary["why"])

    BrokerStage().play(story)


def test_a_client_above_the_limit_waits_until_another_goes() -> None:
    async def story(stage: BrokerStage) -> None:
        async def asked(connection: Connection[Call, Message]) -> bool:
            try:
                await connection.request(Call.of(MetadataRequest(topics=()), 9, "c"), timeout_us=1_000_000)
            except RequestTimedOut:
                return False
            return True

        # The broker's own controller has one.
        first, second = [await stage.connect() for _ in range(2)]
        assert await asked(first)
        assert await asked(second)
        assert not await asked(await stage.connect())
        waiting = await stage.connect()
        first.close()
        assert await asked(waiting)

    BrokerStage(max_connections=3).play(story)


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a broker has of its machine. `disk_bytes`: of its data folder."""

    memory_bytes: int
    descriptors: int
    threads: int
    disk_bytes: int

    @classmethod
    def of(cls, cluster: ClusterProcess) -> Self:
        process = psutil.Process(cluster.broker.pid)
        data = 0
        for path in cluster.data.rglob("*"):
            with suppress(FileNotFoundError):  # the broker deletes topics
                data += path.stat().st_size if path.is_file() else 0
        return cls(process.memory_info().rss, process.num_fds(), process.num_threads(), data)

    def grown_since(self, before: Self) -> list[str]:
        """What has grown beyond its bound. Topics that the frames create, and mostly delete, take some descriptors and
        a few kilobytes."""
        bounds = {"memory_bytes": 50 * 2**20, "descriptors": 50, "threads": 10, "disk_bytes": 5 * 2**20}
        grown = {name: getattr(self, name) - getattr(before, name) for name in bounds}
        return [f"{name} by {more}" for name, more in grown.items() if more > bounds[name]]


def test_each_part_of_a_footprint_is_bounded() -> None:
    before = Footprint(80 << 20, 13, 4, 1000)
    assert before.grown_since(before) == []
    grown = replace(before, memory_bytes=200 << 20), replace(before, descriptors=113), replace(before, threads=24)
    assert [each.grown_since(before) for each in (*grown, replace(before, disk_bytes=6 << 20))] == [
        [f"memory_bytes by {120 << 20}"],
        ["descriptors by 100"],
        ["threads by 20"],
        [f"disk_bytes by {(6 << 20) - 1000}"],
    ]


@pytest.mark.slow
@pytest.mark.timeout(560)
def test_hostile_frames_over_sockets(tmp_path: Path) -> None:
    """To a process: each frame on a connection of its own, as most end theirs."""
    chance, frames = random.Random(100_000), usual(20_000, 100_000)
    kept = [chance.randbytes(1 + chance.randrange(500)) for _ in range(1000)]
    with ClusterProcess(tmp_path) as cluster:
        assert _written(cluster, "before", kept) == []
        before = Footprint.of(cluster)
        host, port = cluster.bootstrap.split(":")
        handled = sum(_handled(host, int(port), with_length(frame(chance), chance)) for _ in range(frames))
        assert handled > 0.9 * frames, "others ask the broker to wait"
        assert cluster.broker.ended is False
        assert (_written(cluster, "before", [b"x"]), _written(cluster, "after", [b"x"])) == ([], [])
        assert _read(cluster, "before", len(kept) + 1) == [*kept, b"x"]
        assert Footprint.of(cluster).grown_since(before) == []
        log = cluster.broker.log_file.read_text("utf-8", "replace")
    closed = re.findall(r"a connection was closed: 127\.0\.0\.1:\d+: (.+)", log)
    assert closed and all(closed)
    assert "further connections were closed: " in log
    assert len(log) < 2**20


def _handled(host: str, port: int, data: bytes) -> bool:
    """Whether the broker answered, or closed the connection, before the client's patience ended."""
    with socket.create_connection((host, port), 30) as connection:
        connection.settimeout(PATIENCE_US / 1_000_000)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
        except TimeoutError:
            return False
        except OSError:  # reset
            return True
    return True


def _written(cluster: ClusterProcess, topic: str, values: Iterable[bytes]) -> list[object]:
    """The errors of records that a real client writes to a topic, which is created if it is not there."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 60_000})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error))
    assert producer.flush(70) == 0
    return [error for error in errors if error is not None]


def _read(cluster: ClusterProcess, topic: str, count: int) -> list[bytes | None]:
    """The values of a topic's first partition, by a real client: so many, and what comes within a second after them."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[bytes | None] = []
    try:
        while (message := consumer.poll(30 if len(found) < count else 1)) is not None:
            assert message.error() is None, message.error()
            found.append(message.value())
    finally:
        consumer.close()
    return found
