"""DeleteTopics, by the controller only (`KafkaApis.handleDeleteTopicsRequest`).

The answer waits until this broker's metadata has the topics no more, or the client's time is over. Version 6 takes
topic ids, which other APIs of this broker do not.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from rebalance_lab.wire.kafka.schema import Versions

#: The first version that has an error of its own for brokers that delete no topics.
_DISABLED_SINCE = 3


async def handle(parts: Parts, call: Call) -> DeleteTopicsResponse:
    names = list(dict.fromkeys(call.request.topic_names))
    errors = {each: await _asked(parts, each, call.version) for each in names}
    going = [each for each in names if errors[each] is ErrorCode.NONE]
    in_time = call.request.timeout_ms > 0 and await parts.until_metadata(
        lambda: not any(each in parts.metadata.topics for each in going), call.request.timeout_ms
    )
    for each in going:
        if not in_time and (call.request.timeout_ms <= 0 or each in parts.metadata.topics):
            errors[each] = ErrorCode.REQUEST_TIMED_OUT
    return DeleteTopicsResponse(
        responses=tuple(DeletableTopicResult(name=each, error_code=errors[each]) for each in names)
    )


async def _asked(parts: Parts, topic: str, version: int) -> ErrorCode:
    if not parts.is_controller():
        return ErrorCode.NOT_CONTROLLER
    if not parts.config.delete_topic_enable:
        return ErrorCode.INVALID_REQUEST if version < _DISABLED_SINCE else ErrorCode.TOPIC_DELETION_DISABLED
    if topic not in parts.metadata.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        await parts.topics.delete(topic)
    except Refused as refused:
        return refused.code
    return ErrorCode.NONE


HANDLER = Handler(ApiKey.DELETE_TOPICS, Versions(0, 5), handle)
