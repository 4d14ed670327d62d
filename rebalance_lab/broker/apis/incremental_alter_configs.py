"""IncrementalAlterConfigs: change single settings of a topic (`KafkaApis.handleIncrementalAlterConfigsRequest`).

Any broker does it. It reads what the topic overrides and writes all of it anew, as Kafka does: of two changes at the
same moment one may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.config_resources import Alteration, alter
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.settings import TOPIC_SETTINGS, Kind, text_of
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.config_kinds import Operation
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> IncrementalAlterConfigsResponse:
    request = call.request
    responses = await alter(
        parts,
        map(_alteration, request.resources),
        AlterConfigsResourceResponse,
        validate_only=request.validate_only,
    )
    return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=responses)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    def settled(overrides: Mapping[str, str]) -> Mapping[str, str]:
        found = dict(overrides)
        for each in resource.configs:
            _change(found, each)
        return found

    return Alteration(
        resource.resource_type,
        resource.resource_name,
        [each.name for each in resource.configs],
        [each.name for each in resource.configs if each.value is None and each.config_operation != Operation.DELETE],
        settled,
        increments=True,
    )


def _change(overrides: dict[str, str], wanted: AlterableConfig) -> None:
    """Raises Refused."""
    name, value = wanted.name, wanted.value or ""
    match wanted.config_operation:
        case Operation.SET:
            overrides[name] = value
        case Operation.DELETE:
            overrides.pop(name, None)
        case Operation.APPEND:
            items = _items(overrides, name, "append")
            overrides[name] = ",".join([*items, *(each for each in value.split(",") if each not in items)])
        case Operation.SUBTRACT:
            items = _items(overrides, name, "subtract")
            for each in value.split(","):
                if each in items:
                    items.remove(each)
            overrides[name] = ",".join(items)
        case other:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {other}")


def _items(overrides: Mapping[str, str], name: str, operation: str) -> list[str]:
    """Of a list, as it is now. Raises Refused."""
    setting = TOPIC_SETTINGS.get(name)
    if setting is None:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if setting.kind is not Kind.LIST:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Config value {operation} is not allowed for config key: {name}")
    text = overrides.get(name, text_of(setting.default)) or ""
    return text.split(",") if text else []


HANDLER = Handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, Versions(0, 1), handle)
