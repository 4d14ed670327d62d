"""CreatePartitions, by the controller only (`KafkaApis.handleCreatePartitionsRequest`)."""

from __future__ import annotations

from collections import Counter
from functools import partial

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.new_topics import add_partitions
from rebalance_lab.broker.refused import NOT_THE_CONTROLLER, Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> CreatePartitionsResponse:
    request = call.request
    times = Counter(each.name for each in request.topics)
    asked_us = parts.tasks.now_us()
    work = {
        each.name: partial(_added, parts, each, once=times[each.name] == 1, validate_only=request.validate_only)
        for each in request.topics
    }
    refused = await parts.outcomes(work, request.timeout_ms)
    late: set[str] = set()
    if not request.validate_only:
        added = {each.name: range(each.count) for each in request.topics if refused[each.name] is None}
        late = await parts.topics_without_leaders(added, parts.left_ms(asked_us, request.timeout_ms))
    return CreatePartitionsResponse(
        throttle_time_ms=0,
        results=tuple(_result(name, outcome, late=name in late) for name, outcome in refused.items()),
    )


async def _added(parts: Parts, topic: CreatePartitionsTopic, *, once: bool, validate_only: bool) -> None:
    """Raises Refused."""
    if not once:
        raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
    if not parts.is_controller():
        raise Refused(ErrorCode.NOT_CONTROLLER, NOT_THE_CONTROLLER)
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    await add_partitions(parts, topic.name, topic.count, assignments, validate_only=validate_only)


def _result(name: str, refused: Refused | None, *, late: bool) -> CreatePartitionsTopicResult:
    if refused is not None:
        return CreatePartitionsTopicResult(name=name, error_code=refused.code, error_message=str(refused))
    code = ErrorCode.REQUEST_TIMED_OUT if late else ErrorCode.NONE
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=None)


HANDLER = Handler(ApiKey.CREATE_PARTITIONS, Versions(0, 3), handle)
