"""From a request to its response: which APIs are served, in which versions, and by whom.

A request that is not served closes its connection, as in Kafka: the client could not read an answer. ApiVersions is the
exception, by which clients find out what is served.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from rebalance_lab.broker import apis
from rebalance_lab.broker.apis.api_versions import unsupported_version
from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.broker.refused import CloseConnection
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.schema import Message, Versions
from rebalance_lab.world.errors import SessionClosed, SessionExpired

HANDLERS: Mapping[ApiKey, Handler] = {
    handler.key: handler
    for handler in (
        importlib.import_module(f"{apis.__name__}.{module.name}").HANDLER
        for module in pkgutil.iter_modules(apis.__path__)
    )
}

#: What ApiVersions says. Produce is said to begin at 0, as Kafka 4 says without serving it: librdkafka up to 2.11 does
#: not compress otherwise (KAFKA-18659).
ADVERTISED: Mapping[ApiKey, Versions] = {
    key: Versions(0, handler.versions.last) if key is ApiKey.PRODUCE else handler.versions
    for key, handler in HANDLERS.items()
}


async def answer(parts: Parts, call: Call) -> Message | None:
    """The response to a request; None if the client waits for none. Raises CloseConnection."""
    if call.message is None:
        return unsupported_version(ADVERTISED.items())
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
