"""LeaderAndIsr: the controller says who leads (`KafkaApis.handleLeaderAndIsrRequest`).

Versions 0 to 4: later ones answer by topic id.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionError, LeaderAndIsrResponse
from rebalance_lab.wire.kafka.schema import Versions


async def handle(parts: Parts, call: Call) -> LeaderAndIsrResponse:
    try:
        errors = await parts.replicas.lead_or_follow(call.request)
    except Refused as refused:
        return LeaderAndIsrResponse(error_code=refused.code)
    return LeaderAndIsrResponse(
        error_code=ErrorCode.NONE,
        partition_errors=tuple(
            LeaderAndIsrPartitionError(topic_name=topic, partition_index=partition, error_code=error)
            for (topic, partition), error in errors.items()
        ),
    )


HANDLER = Handler(ApiKey.LEADER_AND_ISR, Versions(0, 4), handle)
