"""AlterPartitionReassignments: a client asks the controller for other replicas of partitions, or takes that back
(`KafkaApis.handleAlterPartitionReassignmentsRequest`, Kafka 3.9.1; KIP-455).

It is answered once the reassignments have begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from controller.refusals import Rejected
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import NOT_THE_CONTROLLER
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> AlterPartitionReassignmentsResponse:
    request: AlterPartitionReassignmentsRequest = call.request
    targets = {
        TopicPartition(topic.name, each.partition_index): each.replicas
        for topic in request.topics
        for each in topic.partitions
    }
    controller = parts.controller()
    results = None if controller is None else await controller.ask_reassignment(targets)
    if results is None:
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER, responses=()
        )
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, responses=_responses(results)
    )


def _responses(results: Mapping[TopicPartition, Rejected | None]) -> tuple[ReassignableTopicResponse, ...]:
    by_topic = groupby(sorted(results), key=lambda each: each.topic)
    return tuple(
        ReassignableTopicResponse(
            name=topic, partitions=tuple(_response(each.partition, results[each]) for each in partitions)
        )
        for topic, partitions in by_topic
    )


def _response(partition: int, rejected: Rejected | None) -> ReassignablePartitionResponse:
    if rejected is None:
        return ReassignablePartitionResponse(partition_index=partition, error_code=ErrorCode.NONE, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=partition, error_code=rejected.code, error_message=rejected.message
    )


HANDLER = Handler(ApiKey.ALTER_PARTITION_REASSIGNMENTS, Versions(0, 0), handle)
