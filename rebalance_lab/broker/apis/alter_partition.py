"""AlterPartition: a leader asks the controller for another ISR (`KafkaController.alterPartitions`, KIP-497).

A broker that is not the controller answers NOT_CONTROLLER, and the leader looks for the controller again. Versions from
2 on speak of topic ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from controller.cluster import Stored
from controller.stimuli import IsrWanted
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> AlterPartitionResponse:
    request: AlterPartitionRequest = call.request
    controller = parts.controller()
    if controller is None:
        return _response(ErrorCode.NOT_CONTROLLER, {})
    wanted = {
        TopicPartition(topic.topic_name, each.partition_index): IsrWanted(
            each.leader_epoch, each.new_isr, each.partition_epoch
        )
        for topic in request.topics
        for each in topic.partitions
    }
    return _response(*await controller.ask_isr(request.broker_id, request.broker_epoch, wanted))


def _response(error: ErrorCode, results: Mapping[TopicPartition, Stored | ErrorCode]) -> AlterPartitionResponse:
    by_topic = groupby(sorted(results.items(), key=lambda each: each[0]), key=lambda each: each[0].topic)
    return AlterPartitionResponse(
        throttle_time_ms=0,
        error_code=error,
        topics=tuple(
            AlterPartitionResponseTopicData(
                topic_name=topic, partitions=tuple(_partition(each.partition, found) for each, found in them)
            )
            for topic, them in by_topic
        ),
    )


def _partition(number: int, found: Stored | ErrorCode) -> AlterPartitionResponsePartitionData:
    if isinstance(found, ErrorCode):
        return AlterPartitionResponsePartitionData(
            partition_index=number, error_code=found, leader_id=0, leader_epoch=0, isr=(), partition_epoch=0
        )
    state = found.leader_and_isr
    return AlterPartitionResponsePartitionData(
        partition_index=number,
        error_code=ErrorCode.NONE,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        leader_recovery_state=int(state.recovering),
        partition_epoch=found.version,
    )


HANDLER = Handler(ApiKey.ALTER_PARTITION, Versions(0, 1), handle)
