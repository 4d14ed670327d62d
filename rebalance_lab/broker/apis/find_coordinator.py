"""FindCoordinator: there is none yet, and the client may ask again (`KafkaApis.handleFindCoordinatorRequest`).

It is served all the same, because librdkafka takes a broker without it for one that cannot read lz4. Version 4 asks for
several coordinators at once.
"""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from rebalance_lab.wire.kafka.schema import Versions

NO_NODE = -1


#: The only key type of version 0, which does not name it.
GROUP = 0


async def handle(parts: Parts, call: Call) -> FindCoordinatorResponse:
    """Clients ask again and again, without a word to their users, so the broker says it."""
    request: FindCoordinatorRequest = call.request
    kind = "consumer group" if request.key_type == GROUP else "transactional id"
    parts.coordinator_asked_for(f"{kind} {request.key[:100]!r}")
    return FindCoordinatorResponse(
        error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        error_message="this broker serves no consumer groups and no transactions",
        node_id=NO_NODE,
        host="",
        port=NO_NODE,
    )


HANDLER = Handler(ApiKey.FIND_COORDINATOR, Versions(0, 3), handle)
