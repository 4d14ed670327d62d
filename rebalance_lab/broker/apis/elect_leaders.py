"""ElectLeaders: a client asks the controller for preferred leaders, or for unclean elections
(`KafkaApis.handleElectLeaders`, `DelayedElectLeader`, Kafka 3.9.1; KIP-183, KIP-460).

A partition is answered once this broker has heard of its leader. If all partitions are asked for, those that need no
election are left out of the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby

from controller.refusals import NotElected
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from rebalance_lab.wire.kafka.schema import Versions

#: Of an ElectLeaders request.
PREFERRED, UNCLEAN = 0, 1


async def handle(parts: Parts, call: Call) -> ElectLeadersResponse:
    request: ElectLeadersRequest = call.request
    asked_us = parts.tasks.now_us()
    partitions = _partitions(parts, request)
    if request.election_type not in (PREFERRED, UNCLEAN):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        why = f"there is no election of type {request.election_type}; ask for 0 (preferred) or 1 (unclean)"
        return _response(dict.fromkeys(partitions, NotElected(error, why)), error)
    controller = parts.controller()
    if controller is None:
        return _response(dict.fromkeys(partitions, NotElected(ErrorCode.NOT_CONTROLLER, None)))
    results = dict(await controller.ask_election(partitions, unclean=request.election_type == UNCLEAN))
    leaders = {each: found for each, found in results.items() if isinstance(found, int)}
    await parts.until_metadata(lambda: not _unheard(parts, leaders), parts.left_ms(asked_us, request.timeout_ms))
    for each in _unheard(parts, leaders):
        results[each] = NotElected(ErrorCode.REQUEST_TIMED_OUT, None)
    if request.topic_partitions is None:
        results = {each: found for each, found in results.items() if not _is_needless(found)}
    return _response(results)


def _partitions(parts: Parts, request: ElectLeadersRequest) -> list[TopicPartition]:
    if request.topic_partitions is None:
        return [
            TopicPartition(name, each) for name, topic in parts.metadata.topics.items() for each in topic.partitions
        ]
    return [TopicPartition(topic.topic, each) for topic in request.topic_partitions for each in topic.partitions]


def _unheard(parts: Parts, leaders: Mapping[TopicPartition, int]) -> Collection[TopicPartition]:
    return [each for each, leader in leaders.items() if parts.metadata.leader_of(*each) != leader]


def _is_needless(found: int | NotElected) -> bool:
    return isinstance(found, NotElected) and found.code is ErrorCode.ELECTION_NOT_NEEDED


def _response(
    results: Mapping[TopicPartition, int | NotElected], error: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    by_topic = groupby(sorted(results.items(), key=lambda each: each[0]), key=lambda each: each[0].topic)
    return ElectLeadersResponse(
        throttle_time_ms=0,
        error_code=error,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic, partition_result=tuple(_result(each.partition, found) for each, found in them)
            )
            for topic, them in by_topic
        ),
    )


def _result(partition: int, found: int | NotElected) -> PartitionResult:
    if isinstance(found, int):
        return PartitionResult(partition_id=partition, error_code=ErrorCode.NONE, error_message=None)
    return PartitionResult(partition_id=partition, error_code=found.code, error_message=found.message)


HANDLER = Handler(ApiKey.ELECT_LEADERS, Versions(0, 2), handle)
