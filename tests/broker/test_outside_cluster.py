"""A client that others wrote, and three brokers of ours, of which the leader is killed while it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.slow

RECORDS = 2000
LIMIT_S = 90


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, Any]]:
    settings = ("default.replication.factor=3", "min.insync.replicas=2", "replica.lag.time.max.ms=3000")
    arguments = [word for each in settings for word in ("--set", each)]
    command = [sys.executable, "-m", "rebalance_lab", "cluster", "--brokers", "3", "--data", str(tmp_path), "--json"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_S)


def write(bootstrap: str, half_way: Callable[[], None]) -> list[bytes]:
    """Write so many records to partition t-0, and call `half_way` once half of them are sent. Returns those that were
    acknowledged."""
    acknowledged: list[bytes] = []

    def delivered(error: object, message: Any) -> None:
        if error is None:
            acknowledged.append(message.value())

    settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True}
    producer = Producer({**settings, "delivery.timeout.ms": LIMIT_S * 1000})
    for number in range(RECORDS):
        producer.produce("t", str(number).encode(), partition=0, callback=delivered)
        producer.poll(0.001)
        if number == RECORDS // 2:
            half_way()
    assert producer.flush(LIMIT_S) == 0
    return acknowledged


def leader(admin: AdminClient) -> int:
    found: int = admin.list_topics("t", timeout=LIMIT_S).topics["t"].partitions[0].leader
    return found


def read(bootstrap: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    give_up = time.monotonic() + LIMIT_S
    while len(found) < count and time.monotonic() < give_up:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


def test_an_idempotent_producer_loses_and_repeats_nothing_when_the_leader_is_killed(
    cluster: dict[str, Any],
) -> None:
    bootstrap = cluster["bootstrap"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 3)])["t"].result(LIMIT_S)
    first = leader(admin)
    acknowledged = write(bootstrap, lambda: os.kill(cluster["pids"]["brokers"][str(first)], signal.SIGKILL))
    assert len(acknowledged) == RECORDS
    assert leader(admin) != first
    assert read(bootstrap, RECORDS) == [str(number).encode() for number in range(RECORDS)]
