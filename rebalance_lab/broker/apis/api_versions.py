"""ApiVersions: which APIs this broker answers, in which versions (`KafkaApis.handleApiVersionsRequest`).

A client that asks in a version of the future gets an answer, too: `dispatch` builds it in version 0 with
UNSUPPORTED_VERSION, and the client asks again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rebalance_lab.broker.calls import Handler, Parts
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsResponse
from rebalance_lab.wire.kafka.schema import Versions

#: What a client's software and its version may be called (KIP-511).
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_NAMED_SINCE = 3


async def handle(parts: Parts, call: Call) -> ApiVersionsResponse:
    names = (call.request.client_software_name, call.request.client_software_version)
    if call.version >= _NAMED_SINCE and not all(map(_SOFTWARE.fullmatch, names)):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=advertised(parts.advertised.items()))


def unsupported_version(known: Iterable[tuple[ApiKey, Versions]]) -> ApiVersionsResponse:
    """The answer to a version that does not exist: the versions of ApiVersions itself."""
    own = [(key, versions) for key, versions in known if key is ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=advertised(own))


def advertised(known: Iterable[tuple[ApiKey, Versions]]) -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
        for key, versions in sorted(known)
    )


HANDLER = Handler(ApiKey.API_VERSIONS, Versions(0, 4), handle)
