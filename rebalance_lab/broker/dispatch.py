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
from rebalance_lab.broker.versions import Release
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


def _served(release: Release) -> dict[ApiKey, Versions]:
    last = release.last_versions
    if last is None:
        return {key: handler.versions for key, handler in HANDLERS.items()}
    known = {key: handler.versions for key, handler in HANDLERS.items() if key in last}
    return {key: Versions(each.first, min(each.last, last[key])) for key, each in known.items()}


#: The versions that a broker of each release serves.
SERVED: Mapping[Release, Mapping[ApiKey, Versions]] = {each: _served(each) for each in Release}


def advertised(release: Release) -> dict[ApiKey, Versions]:
    """What ApiVersions says. Produce is said to begin at 0, as Kafka 4 says without serving it: librdkafka up to 2.11
    does not compress otherwise (KAFKA-18659)."""
    served = SERVED[release]
    return {**served, ApiKey.PRODUCE: Versions(0, served[ApiKey.PRODUCE].last)}


async def answer(parts: Parts, call: Call) -> Message | None:
    """The response to a request; None if the client waits for none. Raises CloseConnection."""
    release = parts.config.lab_release
    versions = SERVED[release].get(call.key)
    if versions is None:
        raise CloseConnection(f"{call.key.name} is not served here")
    if call.version not in versions:
        if call.key is ApiKey.API_VERSIONS:
            own_range_is_named = release is not Release.V1_1  # from 2.4 on (KIP-511)
            return unsupported_version(parts.advertised.items() if own_range_is_named else ())
        first, last = versions
        raise CloseConnection(f"{call.key.name} version {call.version} is not served here, {first} to {last} are")
    try:
        return await HANDLERS[call.key].handle(parts, call)
    except (SessionExpired, SessionClosed) as error:
        raise CloseConnection(f"the broker has lost its ZooKeeper session meanwhile: {error}") from None
