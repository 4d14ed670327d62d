"""OffsetForLeaderEpoch: where leader epochs ended, for followers and clients whose logs or positions may have parted
from the leader's (`ReplicaManager.lastOffsetForLeaderEpoch`, KIP-101, KIP-279, KIP-320)."""

from __future__ import annotations

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    _answer(parts, TopicPartition(topic.topic, each.partition), each) for each in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
    )


def _answer(parts: Parts, partition: TopicPartition, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        replica = parts.replicas.led(partition, asked.current_leader_epoch)
    except Refused as refused:
        return EpochEndOffset(error_code=refused.code, partition=partition.partition)
    end = replica.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=partition.partition, leader_epoch=end.epoch, end_offset=end.offset
    )


HANDLER = Handler(ApiKey.OFFSET_FOR_LEADER_EPOCH, Versions(0, 4), handle)
