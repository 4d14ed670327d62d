"""Exact bytes: requests as Kafka 0.8.2.2 sent them, and what 3.9.1 stores (tests/vectors)."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.wire.kafka.codec import codec
from rebalance_lab.wire.kafka.frames import decode_request, encode_request, read_header
from rebalance_lab.wire.kafka.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
)
from rebalance_lab.wire.kafka.messages.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaPartitionV0, StopReplicaRequest
from rebalance_lab.wire.kafka.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from rebalance_lab.wire.kafka.schema import Message

VECTORS = Path(__file__).parents[2] / "vectors"
SENT = json.loads((VECTORS / "wire_0_8.json").read_text("utf-8"))["cases"]
STORED = json.loads((VECTORS / "wire_3_9.json").read_text("utf-8"))["cases"]


def names(cases: list[dict[str, Any]]) -> list[str]:
    return [f"{case['kind']}-{case.get('name', n)}-{case.get('version', 0)}" for n, case in enumerate(cases)]


# -- Kafka 0.8.2.2 ----------------------------------------------------------------------------


def states(fields: dict[str, Any], struct: Any, epoch_name: str) -> tuple[Any, ...]:
    return tuple(
        struct(
            topic_name=each["topic"],
            partition_index=each["partition"],
            controller_epoch=each["controller_epoch"],
            leader=each["leader"],
            leader_epoch=each["leader_epoch"],
            isr=tuple(each["isr"]),
            replicas=tuple(each["replicas"]),
            **{epoch_name: each["zk_version"]},
        )
        for each in fields["partition_states"]
    )


def sent(kind: str, fields: dict[str, Any]) -> Message:
    controller = {"controller_id": fields["controller_id"], "controller_epoch": fields["controller_epoch"]}
    if kind == "LeaderAndIsrRequest":
        leaders = tuple(
            LeaderAndIsrLiveLeader(broker_id=each["id"], host_name=each["host"], port=each["port"])
            for each in fields["live_leaders"]
        )
        partitions = states(fields, LeaderAndIsrPartitionState, "partition_epoch")
        return LeaderAndIsrRequest(**controller, ungrouped_partition_states=partitions, live_leaders=leaders)
    if kind == "UpdateMetadataRequest":
        brokers = tuple(
            UpdateMetadataBroker(id=each["id"], v0_host=each["host"], v0_port=each["port"])
            for each in fields["alive_brokers"]
        )
        partitions = states(fields, UpdateMetadataPartitionState, "zk_version")
        return UpdateMetadataRequest(**controller, ungrouped_partition_states=partitions, live_brokers=brokers)
    return StopReplicaRequest(
        **controller,
        delete_partitions=fields["delete_partitions"],
        ungrouped_partitions=tuple(
            StopReplicaPartitionV0(topic_name=topic, partition_index=partition)
            for topic, partition in fields["partitions"]
        ),
    )


@pytest.mark.parametrize("case", SENT, ids=names(SENT))
def test_requests_are_those_of_0_8_2_2(case: dict[str, Any]) -> None:
    fields = case["fields"]
    message = sent(case["kind"], fields)
    frame = bytes.fromhex(case["framed_hex"])[4:]
    ids = {"correlation_id": fields["correlation_id"], "client_id": fields["client_id"]}
    assert encode_request(message, fields["version"], **ids).hex() == frame.hex()
    header = read_header(frame)
    assert header.key == case["api_key"]
    assert (header.correlation_id, header.client_id) == (fields["correlation_id"], fields["client_id"])
    assert decode_request(frame, header) == message


def test_all_requests_of_0_8_2_2_are_there() -> None:
    assert len(SENT) == 34


# -- Kafka 3.9.1 ------------------------------------------------------------------------------


def by_topic(pairs: list[list[Any]], struct: Any) -> tuple[Any, ...]:
    """Partitions that follow one another are one entry of their topic, as in ConsumerProtocol."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in pairs:
        topics[topic].append(partition)
    return tuple(struct(topic=topic, partitions=tuple(partitions)) for topic, partitions in topics.items())


def data(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def stored(case: dict[str, Any]) -> Message:
    kind, fields = case["kind"], case.get("decoded", case["fields"])
    if kind == "ConsumerProtocolSubscription":
        return ConsumerProtocolSubscription(
            topics=tuple(fields["topics"]),
            user_data=data(fields["user_data_hex"]),
            owned_partitions=by_topic(fields["owned_partitions"], ConsumerProtocolSubscriptionTopicPartition),
            generation_id=fields["generation"],
            rack_id=case["fields"]["rack_id"] if case["version"] >= 3 else None,  # it reads "" as none
        )
    if kind == "ConsumerProtocolAssignment":
        pairs = by_topic(fields["partitions"], ConsumerProtocolAssignmentTopicPartition)
        return ConsumerProtocolAssignment(assigned_partitions=pairs, user_data=data(fields["user_data_hex"]))
    if kind == "OffsetCommitKey":
        return OffsetCommitKey(**fields)
    if kind == "GroupMetadataKey":
        return GroupMetadataKey(**fields)
    given = in_ms(
        {name: value for name, value in fields.items() if name in {"leader", "protocol"} or value is not None}
    )
    if kind == "OffsetCommitValue":
        return OffsetCommitValue(**given)
    members = tuple(member(each) for each in given.pop("members"))
    return GroupMetadataValue(**given, members=members)


def member(fields: dict[str, Any]) -> MemberMetadata:
    given = in_ms({name: value for name, value in fields.items() if value is not None})
    given |= {"subscription": data(given.pop("subscription_hex")), "assignment": data(given.pop("assignment_hex"))}
    return MemberMetadata(**given)


def in_ms(fields: dict[str, Any]) -> dict[str, Any]:
    """The vectors name times as Kafka does, without their unit."""
    return {f"{name}_ms" if name.endswith(("timestamp", "timeout")) else name: fields[name] for name in fields}


@pytest.mark.parametrize("case", STORED, ids=names(STORED))
def test_what_3_9_1_stores_is_read_and_written_alike(case: dict[str, Any]) -> None:
    message, stored_bytes = stored(case), bytes.fromhex(case["hex"])
    version = int.from_bytes(stored_bytes[:2], "big")  # stands before the message
    assert version == case["version"]
    found = codec(type(message), version)
    assert found.encode(message).hex() == stored_bytes[2:].hex()
    assert found.decode(stored_bytes, 2) == message
