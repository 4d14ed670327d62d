"""From a request to its response: which APIs are served, in which versions, and by whom.

A request that is not served closes its connection, as in Kafka: the client could not read an answer. ApiVersions is the
exception, by which clients find out what is served.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.broker.apis import (
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    fetch,
    init_producer_id,
    leader_and_isr,
    list_offsets,
    metadata,
    produce,
    stop_replica,
    update_metadata,
)
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import CloseConnection
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.schema import Message, Versions
from rebalance_lab.world.errors import SessionClosed, SessionExpired

HANDLERS: Mapping[ApiKey, Handler] = {
    module.HANDLER.key: module.HANDLER
    for module in (
        api_versions,
        create_partitions,
        create_topics,
        delete_topics,
        describe_cluster,
        fetch,
        init_producer_id,
        leader_and_isr,
        list_offsets,
        metadata,
        produce,
        stop_replica,
        update_metadata,
    )
}

SERVED: Mapping[ApiKey, Versions] = {key: handler.versions for key, handler in HANDLERS.items()}


async def answer(parts: Parts, call: Call) -> Message | None:
    """The response to a request; None if the client waits for none. Raises CloseConnection."""
    if call.message is None:
        return api_versions.unsupported_version(SERVED.items())
    handler = HANDLERS.get(call.key)
    if handler is None:
        raise CloseConnection(f"{call.key.name} is not served here")
    if call.version not in handler.versions:
        first, last = handler.versions
        raise CloseConnection(f"{call.key.name} version {call.version} is not served here, {first} to {last} are")
    try:
        return await handler.handle(parts, call)
    except (SessionExpired, SessionClosed) as error:
        raise CloseConnection(f"the broker has lost its ZooKeeper session meanwhile: {error}") from None
