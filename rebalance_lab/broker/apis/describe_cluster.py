"""DescribeCluster: the brokers and the controller (`KafkaApis.handleDescribeCluster`)."""

from __future__ import annotations

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from rebalance_lab.wire.kafka.schema import Versions

#: Whose endpoints are asked for: brokers', or those of KRaft's controllers, which there are none of.
BROKERS = 1


async def handle(parts: Parts, call: Call) -> DescribeClusterResponse:
    cache = parts.metadata
    asked_for_brokers = call.request.endpoint_type == BROKERS
    nodes = cache.nodes.values() if asked_for_brokers else ()
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE if asked_for_brokers else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=None
        if asked_for_brokers
        else "a cluster on ZooKeeper has no controller endpoints; ask for brokers",
        cluster_id=parts.cluster_id,
        controller_id=-1 if cache.controller_id is None else cache.controller_id,
        brokers=tuple(
            DescribeClusterBroker(broker_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in nodes
        ),
    )


HANDLER = Handler(ApiKey.DESCRIBE_CLUSTER, Versions(0, 1), handle)
