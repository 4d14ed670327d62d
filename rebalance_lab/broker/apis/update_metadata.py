"""UpdateMetadata: what the controller tells every broker of the cluster (`KafkaApis.handleUpdateMetadataRequest`)."""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataResponse
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> UpdateMetadataResponse:
    try:
        parts.replicas.update_metadata(call.request)
    except Refused as refused:
        return UpdateMetadataResponse(error_code=refused.code)
    return UpdateMetadataResponse(error_code=ErrorCode.NONE)


HANDLER = Handler(ApiKey.UPDATE_METADATA, Versions(0, 6), handle)
