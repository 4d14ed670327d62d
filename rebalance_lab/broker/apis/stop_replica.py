"""StopReplica: the controller stops replicas, and has them deleted (`KafkaApis.handleStopReplicaRequest`)."""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaPartitionError, StopReplicaResponse
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> StopReplicaResponse:
    try:
        errors = await parts.replicas.stop(call.request)
    except Refused as refused:
        return StopReplicaResponse(error_code=refused.code, partition_errors=())
    return StopReplicaResponse(
        error_code=ErrorCode.NONE,
        partition_errors=tuple(
            StopReplicaPartitionError(topic_name=topic, partition_index=partition, error_code=error)
            for (topic, partition), error in errors.items()
        ),
    )


HANDLER = Handler(ApiKey.STOP_REPLICA, Versions(0, 3), handle)
