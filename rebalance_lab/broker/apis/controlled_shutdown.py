"""ControlledShutdown: a broker asks the controller to have its partitions led by others before it closes
(`KafkaApis.handleControlledShutdownRequest`, Kafka 3.9.1).

A broker that is not the controller answers STALE_CONTROLLER_EPOCH.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> ControlledShutdownResponse:
    request: ControlledShutdownRequest = call.request
    controller = parts.controller()
    if controller is None:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH, remaining_partitions=())
    error, remaining = await controller.ask_shutdown(request.broker_id, request.broker_epoch)
    return ControlledShutdownResponse(
        error_code=error,
        remaining_partitions=tuple(
            RemainingPartition(topic_name=each.topic, partition_index=each.partition) for each in remaining
        ),
    )


HANDLER = Handler(ApiKey.CONTROLLED_SHUTDOWN, Versions(0, 3), handle)
