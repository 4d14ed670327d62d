"""CreateTopics, by the controller only (`KafkaApis.handleCreateTopicsRequest`).

The answer waits until every new partition has a leader in this broker's metadata, or the client's time is over. Version
7 answers with topic ids, which other APIs of this broker do not take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.config_entries import topic_entries
from rebalance_lab.broker.new_topics import NewTopic, Replicas, create_topics
from rebalance_lab.broker.refused import NOT_THE_CONTROLLER, Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> CreateTopicsResponse:
    request = call.request
    asked_us = parts.tasks.now_us()
    outcomes = await _outcomes(parts, request)
    created = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Refused)}
    late: set[str] = set()
    if created and not request.validate_only:
        late = await parts.topics_without_leaders(created, parts.left_ms(asked_us, request.timeout_ms))
    overrides = {each.name: {one.name: one.value or "" for one in each.configs} for each in request.topics}
    return CreateTopicsResponse(
        topics=tuple(
            _refusal(name, outcome) if isinstance(outcome, Refused) else _created(parts, name, outcome, overrides[name])
            for name, outcome in ((each, _LATE if each in late else outcome) for each, outcome in outcomes.items())
        )
    )


async def _outcomes(parts: Parts, request: CreateTopicsRequest) -> dict[str, Refused | Replicas]:
    times = Counter(each.name for each in request.topics)
    if not parts.is_controller():
        return {each: Refused(ErrorCode.NOT_CONTROLLER, NOT_THE_CONTROLLER) for each in times}
    twice = Refused(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
    new = [_new_topic(each) for each in request.topics if times[each.name] == 1]
    created = await create_topics(parts, new, timeout_ms=request.timeout_ms, validate_only=request.validate_only)
    return {name: created.get(name, twice) for name in times}


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {each.partition_index: each.broker_ids for each in topic.assignments},
        {each.name: each.value for each in topic.configs},
    )


def _refusal(name: str, refused: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refused.code, error_message=str(refused) or None)


def _created(parts: Parts, name: str, replicas: Replicas, overrides: Mapping[str, str]) -> CreatableTopicResult:
    """With what the topic has got, its settings among that (KIP-525)."""
    return CreatableTopicResult(
        name=name,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(replicas),
        replication_factor=len(next(iter(replicas.values()), ())),
        configs=tuple(
            CreatableTopicConfigs(
                name=each.name,
                value=each.value,
                read_only=each.read_only,
                config_source=each.config_source,
                is_sensitive=each.is_sensitive,
            )
            for each in topic_entries(parts, overrides)
        ),
    )


#: The topic is created, and some of its partitions have no leader yet.
_LATE = Refused(ErrorCode.REQUEST_TIMED_OUT, "")

HANDLER = Handler(ApiKey.CREATE_TOPICS, Versions(0, 6), handle)
