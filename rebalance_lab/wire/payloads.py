"""Payloads of brokers and topics, byte for byte as 0.8.2 writes them (`kafka.utils.ZkUtils`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.json_text import encode, parse


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as consumers see it. Its id is in the path, not in the payload."""

    broker_id: int
    host: str
    port: int


def broker_payload(host: str, port: int, *, timestamp_ms: int, jmx_port: int = -1) -> bytes:
    """`/brokers/ids/<id>`; `timestamp_ms` is epoch ms. The fields' order is that of Scala's
    hash trie."""
    return encode(
        {"jmx_port": jmx_port, "timestamp": str(timestamp_ms), "host": host, "version": 1, "port": port}
    ).encode()


@lru_cache(maxsize=1 << 10)  # each member reads them all, in each attempt
def read_broker(broker_id: int, data: bytes) -> Broker:
    """Read a broker's payload; only host and port count. Raises KafkaException with the
    original's text."""
    text = data.decode("utf-8", "replace")
    fields = parse(text)
    if isinstance(fields, dict):
        host, port = fields.get("host"), fields.get("port")
        if isinstance(host, str) and isinstance(port, int) and not isinstance(port, bool):
            return Broker(broker_id, host, port)
    raise KafkaException(f"Failed to parse the broker info from zookeeper: {text}")


def topic_payload(replicas: Mapping[int, Sequence[int]]) -> bytes:
    """The data of `/brokers/topics/<topic>` for partition -> broker ids of its replicas, sorted by partition. Kafka
    writes them in the order of a hash map, so readers must not depend on the order."""
    return encode({"version": 1, "partitions": {str(each): replicas[each] for each in sorted(replicas)}}).encode()


@lru_cache(maxsize=1 << 10)
def read_partitions(topic: str, data: bytes) -> tuple[int, ...]:
    """The topic's partitions, ascending. Text that is not JSON, or has no `partitions`, means none: 0.8 does not treat
    it as an error. Raises KafkaException if a partition is not a number."""
    fields = parse(data.decode("utf-8", "replace"))
    if not isinstance(fields, dict):
        return ()
    partitions = fields.get("partitions", {})
    if not isinstance(partitions, dict) or not all(each.isascii() and each.isdigit() for each in partitions):
        raise KafkaException(f"topic {topic} has partitions that are not numbers: {partitions!r}")
    return tuple(sorted(int(each) for each in partitions))
