"""DescribeConfigs: the settings of topics and of this broker (`kafka.server.ConfigHelper`).

What a setting means is not described: Kafka's sentences are its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.config_resources import broker_id_of, resource_type
from rebalance_lab.broker.log.names import InvalidTopic, check_topic
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.settings import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    InvalidSetting,
    Setting,
    stored_settings,
    text_of,
)
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
    DescribeConfigsSynonym,
)
from rebalance_lab.wire.kafka.schema import Versions

Entries = list[DescribeConfigsResourceResult]


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
            return [] if number is None else [_of_broker(parts, name) for name in BROKER_SETTINGS]
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
    return [_entry(parts, each, overrides) for each in TOPIC_SETTINGS.values()]


def _entry(parts: Parts, setting: Setting, overrides: Mapping[str, str]) -> DescribeConfigsResourceResult:
    synonyms = []
    if setting.name in overrides:
        value = text_of(setting.read(overrides[setting.name]))
        synonyms.append(DescribeConfigsSynonym(name=setting.name, value=value, source=ConfigSource.TOPIC_CONFIG))
    if setting.server is not None:
        synonyms += _synonyms(parts, setting.server)
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=synonyms[0].value if synonyms else text_of(setting.default),
        read_only=False,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=False,
        synonyms=tuple(synonyms),
        config_type=setting.kind,
        documentation=None,
    )


def _of_broker(parts: Parts, name: str) -> DescribeConfigsResourceResult:
    synonyms = _synonyms(parts, name)
    return DescribeConfigsResourceResult(
        name=name,
        value=text_of(parts.settings[name]),
        read_only=True,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=False,
        synonyms=tuple(synonyms),
        config_type=BROKER_SETTINGS[name].kind,
        documentation=None,
    )


def _synonyms(parts: Parts, name: str) -> list[DescribeConfigsSynonym]:
    """Of a broker's setting: what it was started with, and the default."""
    value, default = parts.settings[name], BROKER_SETTINGS[name].default
    found = []
    if value is not None and value != default:
        found.append(DescribeConfigsSynonym(name=name, value=text_of(value), source=ConfigSource.STATIC_BROKER_CONFIG))
    if default is not None:
        found.append(DescribeConfigsSynonym(name=name, value=text_of(default), source=ConfigSource.DEFAULT_CONFIG))
    return found


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
