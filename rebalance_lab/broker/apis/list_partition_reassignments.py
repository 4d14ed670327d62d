"""ListPartitionReassignments: a client asks the controller which partitions are being reassigned
(`KafkaApis.handleListPartitionReassignmentsRequest`, Kafka 3.9.1; KIP-455)."""

from __future__ import annotations

from itertools import groupby

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import NOT_THE_CONTROLLER
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> ListPartitionReassignmentsResponse:
    request: ListPartitionReassignmentsRequest = call.request
    wanted = None
    if request.topics is not None:
        wanted = [TopicPartition(topic.name, each) for topic in request.topics for each in topic.partition_indexes]
    controller = parts.controller()
    found = None if controller is None else await controller.list_reassignments(wanted)
    if found is None:
        return ListPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER, topics=()
        )
    by_topic = groupby(sorted(found), key=lambda each: each.topic)
    topics = tuple(
        OngoingTopicReassignment(
            name=topic,
            partitions=tuple(
                OngoingPartitionReassignment(
                    partition_index=each.partition,
                    replicas=found[each].replicas,
                    adding_replicas=found[each].adding,
                    removing_replicas=found[each].removing,
                )
                for each in partitions
            ),
        )
        for topic, partitions in by_topic
    )
    return ListPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=topics
    )


HANDLER = Handler(ApiKey.LIST_PARTITION_REASSIGNMENTS, Versions(0, 0), handle)
