"""Kafka's messages to bytes and back, with the lab's codecs and with kafka-python's.

Run: python benchmarks/kafka_messages.py [--runs 7] [--json]

Both read the same bytes and write them again. The two take turns in going first; times are of the processor. Exits with
1 when the lab's median is the larger one in some row. kafka-python does not have LeaderAndIsr, a message of brokers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.messages import fetch, leader_and_isr, metadata, produce
from rebalance_lab.wire.kafka.records import Record, build_batch, check_batch, records
from rebalance_lab.wire.kafka.schema import Message

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of importlib.resources
    from kafka.protocol.consumer import FetchResponse
    from kafka.protocol.metadata import MetadataResponse
    from kafka.protocol.producer import ProduceRequest
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

PARTITIONS, BATCH = 1_000, bytes(1_000)
RECORDS = [Record(b"key", b"v" * 100, 1_700_000_000_000 + n) for n in range(1_000)]
LEAST_S = 0.02

Job = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `theirs` is None where there is nothing to compare with."""

    name: str
    ours: Job
    theirs: Job | None


def messages() -> list[tuple[Message, int, Any]]:
    """(message, version, kafka-python's class)."""
    partitions = tuple(
        metadata.MetadataResponsePartition(
            error_code=0, partition_index=n, leader_id=1, replica_nodes=(1, 2, 3), isr_nodes=(1, 2, 3)
        )
        for n in range(PARTITIONS)
    )
    brokers = tuple(metadata.MetadataResponseBroker(node_id=n, host="broker", port=9092) for n in range(3))
    topic = metadata.MetadataResponseTopic(error_code=0, name="orders", partitions=partitions)
    answer = metadata.MetadataResponse(brokers=brokers, topics=(topic,))
    sent = produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=(
            produce.TopicProduceData(
                name="orders", partition_data=(produce.PartitionProduceData(index=0, records=BATCH),)
            ),
        ),
    )
    fetched = fetch.FetchResponse(
        responses=(
            fetch.FetchableTopicResponse(
                topic="orders",
                partitions=tuple(
                    fetch.PartitionData(partition_index=n, error_code=0, high_watermark=n, records=BATCH)
                    for n in range(100)
                ),
            ),
        )
    )
    return [
        (sent, 3, ProduceRequest),
        (sent, 9, ProduceRequest),
        (fetched, 4, FetchResponse),
        (fetched, 12, FetchResponse),
        (answer, 4, MetadataResponse),
        (answer, 9, MetadataResponse),
        *((leader_and_isr_request(version), version, None) for version in (0, 2, 7)),
    ]


def leader_and_isr_request(version: int) -> leader_and_isr.LeaderAndIsrRequest:
    """Of 10,000 partitions in 100 topics, or without topics in version 0."""
    states = tuple(
        leader_and_isr.LeaderAndIsrPartitionState(
            partition_index=n, controller_epoch=1, leader=1, leader_epoch=3, isr=(1, 2, 3), partition_epoch=4,
            replicas=(1, 2, 3), topic_name="orders" if version == 0 else "",
        )
        for n in range(10_000)
    )  # fmt: skip
    topics = tuple(
        leader_and_isr.LeaderAndIsrTopicState(topic_name=f"orders-{n}", partition_states=states[n : n + 100])
        for n in range(0, len(states), 100)
    )
    return leader_and_isr.LeaderAndIsrRequest(
        controller_id=1,
        controller_epoch=1,
        ungrouped_partition_states=states if version == 0 else (),
        topic_states=() if version == 0 else topics,
        live_leaders=(),
    )


def message_rows() -> Iterator[Row]:
    for message, version, theirs in messages():
        ours = codec(type(message), version)
        data = ours.encode(message)
        name = f"{type(message).__name__} {version} ({len(data):,} bytes)"
        other = theirs and theirs.decode(data, version=version)
        if other:
            other._header = None  # one that was read without a header lacks it, and cannot be written
        if other and other.encode(version=version) != data:
            raise SystemExit(f"{name}: kafka-python writes other bytes")
        yield Row(f"{name}, read", partial(ours.decode, data), other and partial(theirs.decode, data, version=version))
        yield Row(f"{name}, write", partial(ours.encode, message), other and partial(other.encode, version=version))


def record_rows() -> Iterator[Row]:
    batch = build_batch(RECORDS)
    name = f"{len(RECORDS):,} records ({len(batch):,} bytes)"
    yield Row(f"{name}, check", partial(check_batch, batch), lambda: KafkaPythonBatch(batch).validate_crc())
    yield Row(f"{name}, read", lambda: list(records(batch)), lambda: list(KafkaPythonBatch(batch)))
    yield Row(f"{name}, build", partial(build_batch, RECORDS), built_by_kafka_python)


def built_by_kafka_python() -> bytes:
    builder = KafkaPythonBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for n, record in enumerate(RECORDS):
        builder.append(n, record.timestamp_ms, record.key, record.value, [])
    return bytes(builder.build())


def processor_us(job: Job) -> float:
    """Of one call, on the average of as many as take a fiftieth of a second."""
    calls = 0
    began = time.process_time()
    while (took := time.process_time() - began) < LEAST_S:
        job()
        calls += 1
    return took / calls * 1e6


def measured(row: Row, runs: int) -> dict[str, Any]:
    sides = {"lab": row.ours} | ({"kafka-python": row.theirs} if row.theirs else {})
    times: dict[str, list[float]] = {side: [] for side in sides}
    for run in range(runs):
        for side in sorted(sides, reverse=bool(run % 2)):
            times[side].append(processor_us(sides[side]))
    return {"row": row.name} | {
        side: {"median": statistics.median(found), "least": min(found), "most": max(found)}
        for side, found in times.items()
    }


def shown(found: dict[str, Any]) -> str:
    ours, theirs = found["lab"], found.get("kafka-python")
    cells = [found["row"], f"**{ours['median']:,.1f}** ({ours['least']:,.1f} to {ours['most']:,.1f})", "", ""]
    if theirs:
        cells[2] = f"{theirs['median']:,.1f} ({theirs['least']:,.1f} to {theirs['most']:,.1f})"
        cells[3] = f"{theirs['median'] / ours['median']:,.1f}"
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [measured(row, options.runs) for row in (*message_rows(), *record_rows())]
    print(json.dumps(found) if options.json else "\n".join(shown(each) for each in found))
    slower = [
        each["row"]
        for each in found
        if "kafka-python" in each and each["lab"]["median"] > each["kafka-python"]["median"]
    ]
    if slower:
        print(f"slower than kafka-python: {'; '.join(slower)}", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
