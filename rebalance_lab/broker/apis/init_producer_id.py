"""InitProducerId: an id for an idempotent producer (`TransactionCoordinator.handleInitProducerId`).

Transactions are not served: a request with a transactional id is refused. Version 5 belongs to them.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.init_producer_id import InitProducerIdResponse
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> InitProducerIdResponse:
    if call.request.transactional_id is not None:
        return InitProducerIdResponse(throttle_time_ms=0, error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    producer_id = await parts.producer_ids.next_id()
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0
    )


HANDLER = Handler(ApiKey.INIT_PRODUCER_ID, Versions(0, 4), handle)
