"""AlterConfigs: replace what a topic overrides (`KafkaApis.handleAlterConfigsRequest`). Any broker does it."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.config_resources import Alteration, alter
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.messages.alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> AlterConfigsResponse:
    request = call.request
    responses = await alter(
        parts,
        map(_alteration, request.resources),
        AlterConfigsResourceResponse,
        validate_only=request.validate_only,
    )
    return AlterConfigsResponse(throttle_time_ms=0, responses=responses)


def _alteration(resource: AlterConfigsResource) -> Alteration:
    wanted = {each.name: each.value for each in resource.configs if each.value is not None}

    def settled(_overrides: Mapping[str, str]) -> Mapping[str, str]:
        return wanted

    return Alteration(
        resource.resource_type,
        resource.resource_name,
        [each.name for each in resource.configs],
        [each.name for each in resource.configs if each.value is None],
        settled,
        increments=False,
    )


HANDLER = Handler(ApiKey.ALTER_CONFIGS, Versions(0, 2), handle)
