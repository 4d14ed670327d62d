"""DeleteTopics, by the controller only (`KafkaApis.handleDeleteTopicsRequest`).

The answer waits until this broker's metadata has the topics no more, or the client's time is over. Version 6 takes
topic ids, which other APIs of this broker do not.
"""

from __future__ import annotations

from functools import partial

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import NOT_THE_CONTROLLER, Refused
from rebalance_lab.broker.topic_store import unknown
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from rebalance_lab.wire.kafka.schema import Versions

#: The first version that has an error of its own for brokers that delete no topics.
_DISABLED_SINCE = 3


async def handle(parts: Parts, call: Call) -> DeleteTopicsResponse:
    asked_us, timeout_ms = parts.tasks.now_us(), call.request.timeout_ms
    names = list(dict.fromkeys(call.request.topic_names))
    outcomes = await parts.outcomes({each: partial(_asked, parts, each, call.version) for each in names}, timeout_ms)
    refused = {each: outcome for each, outcome in outcomes.items() if outcome is not None}
    going = [each for each in names if each not in refused]
    left_ms = parts.left_ms(asked_us, timeout_ms)
    in_time = left_ms > 0 and await parts.until_metadata(
        lambda: not any(each in parts.metadata.topics for each in going), left_ms
    )
    late = Refused(ErrorCode.REQUEST_TIMED_OUT, f"it is not deleted after {timeout_ms} ms; it will be")
    for each in going:
        if not in_time and (timeout_ms <= 0 or each in parts.metadata.topics):
            refused[each] = late
    return DeleteTopicsResponse(responses=tuple(_result(each, refused.get(each)) for each in names))


async def _asked(parts: Parts, topic: str, version: int) -> None:
    """Raises Refused."""
    if not parts.is_controller():
        raise Refused(ErrorCode.NOT_CONTROLLER, NOT_THE_CONTROLLER)
    if not parts.config.delete_topic_enable:
        code = ErrorCode.INVALID_REQUEST if version < _DISABLED_SINCE else ErrorCode.TOPIC_DELETION_DISABLED
        raise Refused(code, "delete.topic.enable is false")
    if topic not in parts.metadata.topics:
        raise unknown(topic)
    await parts.topics.delete(topic)


def _result(topic: str, refused: Refused | None) -> DeletableTopicResult:
    if refused is None:
        return DeletableTopicResult(name=topic, error_code=ErrorCode.NONE)
    return DeletableTopicResult(name=topic, error_code=refused.code, error_message=str(refused))


HANDLER = Handler(ApiKey.DELETE_TOPICS, Versions(0, 5), handle)
