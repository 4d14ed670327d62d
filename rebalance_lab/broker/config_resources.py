"""What has settings, and who changes them (`kafka.server.ConfigAdminManager`, `ZkAdminManager`, Kafka 3.9.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.settings import BROKER_SETTINGS, InvalidSetting, check_settings
from rebalance_lab.broker.topic_store import unknown
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.kafka.config_kinds import ResourceType
from rebalance_lab.wire.kafka.error_codes import ErrorCode

R_co = TypeVar("R_co", covariant=True)


def resource_type(number: int) -> ResourceType:
    return next((each for each in ResourceType if each == number), ResourceType.UNKNOWN)


def broker_id_of(parts: Parts, name: str) -> int | None:
    """The id of this broker, which a request names; None if it speaks of all brokers. Raises Refused."""
    here = parts.config.broker_id
    if not name:
        return None
    if not (name.isascii() and name.removeprefix("-").isdigit()):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != here:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {here} or empty string, but received {name}"
        )
    return here


@dataclass(frozen=True, slots=True)
class Alteration:
    """What a request wants of one resource. `names`: of the settings that it names. `without`: those that lack a value.
    `settled(overrides)`: what the topic is to override, from what it overrides now; it may raise Refused. `increments`:
    whether it needs the latter."""

    kind: int
    name: str
    names: Sequence[str]
    without: Sequence[str]
    settled: Callable[[Mapping[str, str]], Mapping[str, str]]
    increments: bool


class ResponseType(Protocol[R_co]):
    """What either Alter API answers for one resource."""

    def __call__(
        self, *, error_code: int, error_message: str | None, resource_type: int, resource_name: str
    ) -> R_co: ...


async def alter(
    parts: Parts, wanted: Iterable[Alteration], response: ResponseType[R_co], *, validate_only: bool
) -> tuple[R_co, ...]:
    """What came of each."""
    alterations = list(wanted)
    times = Counter((each.kind, each.name) for each in alterations)
    work: dict[int, Callable[[], Awaitable[None]]] = {
        at: partial(_altered, parts, each, once=times[each.kind, each.name] == 1, validate_only=validate_only)
        for at, each in enumerate(alterations)
    }
    outcomes = await parts.outcomes(work)
    return tuple(
        response(
            error_code=ErrorCode.NONE if refused is None else refused.code,
            error_message=None if refused is None else str(refused),
            resource_type=each.kind,
            resource_name=each.name,
        )
        for at, each in enumerate(alterations)
        for refused in [outcomes[at]]
    )


async def _altered(parts: Parts, wanted: Alteration, *, once: bool, validate_only: bool) -> None:
    """Raises Refused."""
    if not once:
        raise _invalid("Each resource must appear at most once.")
    if len(set(wanted.names)) < len(wanted.names):
        raise _invalid("Error due to duplicate config keys")
    if wanted.without:
        raise _invalid(f"Null value not supported for : {', '.join(wanted.without)}")
    match resource_type(wanted.kind):
        case ResourceType.TOPIC:
            await _alter_topic(parts, wanted, validate_only=validate_only)
        case ResourceType.BROKER:
            _alter_broker(parts, wanted)
        case _:
            raise _invalid(f"Unknown resource type {wanted.kind}")


async def _alter_topic(parts: Parts, wanted: Alteration, *, validate_only: bool) -> None:
    """Raises Refused."""
    topic = wanted.name
    if not topic:
        raise _invalid("Default topic resources are not allowed.")
    if topic not in parts.metadata.topics:
        raise unknown(topic)
    try:
        overrides = wanted.settled(await parts.topics.configuration(topic) if wanted.increments else {})
        check_settings(overrides)
    except InvalidSetting as error:
        where = f"Invalid config value for resource ConfigResource(type=TOPIC, name='{topic}'): " if error.known else ""
        raise Refused(ErrorCode.INVALID_CONFIG, f"{where}{error}") from None
    except KafkaException as error:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{error}; AlterConfigs can replace it") from None
    if not validate_only:
        await parts.topics.write_configuration(topic, overrides)


def _alter_broker(parts: Parts, wanted: Alteration) -> None:
    """A broker's settings are those with which it was started. Raises Refused, unless nothing is to change: tools
    delete what it does not have, as `kafka-reassign-partitions --verify` does with throttles."""
    broker_id_of(parts, wanted.name)
    known = sorted(each for each in wanted.names if each in BROKER_SETTINGS)
    if known:
        raise _invalid(f"Cannot update these configs dynamically: {', '.join(known)}; start the broker with them")
    made = sorted(wanted.settled({}))
    if made:
        raise _invalid(f"This broker has no such settings: {', '.join(made)}")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
