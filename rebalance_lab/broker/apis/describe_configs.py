"""DescribeConfigs: the settings of topics and of this broker (`kafka.server.ConfigHelper`).

What a setting means is not described: Kafka's sentences are its own.
"""

from __future__ import annotations

from functools import partial

import msgspec

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.config_entries import Entries, broker_entries, topic_entries
from rebalance_lab.broker.config_resources import broker_id_of, resource_type
from rebalance_lab.broker.log.names import InvalidTopic, check_topic
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.settings import InvalidSetting, stored_settings
from rebalance_lab.broker.topic_store import unknown
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.config_kinds import ConfigSource, ResourceType
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> DescribeConfigsResponse:
    resources = call.request.resources
    outcomes = await parts.outcomes({at: partial(_described, parts, each) for at, each in enumerate(resources)})
    return DescribeConfigsResponse(
        throttle_time_ms=0,
        results=tuple(_result(each, outcomes[at], call) for at, each in enumerate(resources)),
    )


async def _described(parts: Parts, resource: DescribeConfigsResource) -> Entries:
    """Raises Refused."""
    match resource_type(resource.resource_type):
        case ResourceType.TOPIC:
            return await _of_topic(parts, resource.resource_name)
        case ResourceType.BROKER:
            number = broker_id_of(parts, resource.resource_name)
            return [] if number is None else broker_entries(parts)
        case other:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {other.name}")


async def _of_topic(parts: Parts, topic: str) -> Entries:
    """Raises Refused."""
    try:
        check_topic(topic)
    except InvalidTopic as error:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from None
    if topic not in parts.metadata.topics:
        raise unknown(topic)
    try:
        overrides = await parts.topics.configuration(topic)
        stored_settings(overrides)
    except (KafkaException, InvalidSetting) as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    return topic_entries(parts, overrides)


def _result(resource: DescribeConfigsResource, outcome: Entries | Refused, call: Call) -> DescribeConfigsResult:
    refused = outcome if isinstance(outcome, Refused) else None
    entries = [] if isinstance(outcome, Refused) else outcome
    wanted = resource.configuration_keys
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE if refused is None else refused.code,
        error_message=None if refused is None else str(refused),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(_shown(each, call) for each in entries if not wanted or each.name in wanted),
    )


def _shown(entry: DescribeConfigsResourceResult, call: Call) -> DescribeConfigsResourceResult:
    """As the version of the request has it, and with synonyms only for those who ask for them."""
    if call.version == 0:
        return msgspec.structs.replace(entry, is_default=entry.config_source == ConfigSource.DEFAULT_CONFIG)
    return entry if call.request.include_synonyms else msgspec.structs.replace(entry, synonyms=())


HANDLER = Handler(ApiKey.DESCRIBE_CONFIGS, Versions(0, 4), handle)
