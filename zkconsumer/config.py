"""The consumer's settings: names, defaults, units and errors of 0.8.2 (`kafka.consumer.ConsumerConfig`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from zkconsumer.errors import IllegalArgumentException, InvalidConfigException
from zkconsumer.lab_settings import NO_LAB_SETTINGS, LabSettings, read_lab_settings
from zkconsumer.properties import Properties, missing

_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")

STRATEGY_KEY = "partition.assignment.strategy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Every setting of Kafka 0.8.2's ConsumerConfig with its default, in the order in which Kafka reads them. Dots of
    their names are underscores here.

    Units are in the names where Kafka has them there; sizes are bytes; `rebalance_max_retries`
    counts *attempts*; `queued_max_message_chunks` is per queue, `num_consumer_fetchers` per
    broker. `zookeeper_sync_time_ms` does nothing but give `rebalance_backoff_ms` its default.
    `group_given`, `strategy_given`: the group, the assignment strategy was set and is not just the
    default.
    `warnings`: what Kafka would have logged. `lab`: the lab's own settings, which stand among
    Kafka's.
    """

    zookeeper_connect: str
    zookeeper_session_timeout_ms: int = 6000
    zookeeper_connection_timeout_ms: int = 6000
    zookeeper_sync_time_ms: int = 2000
    group_id: str
    consumer_id: str | None = None
    socket_timeout_ms: int = 30_000
    socket_receive_buffer_bytes: int = 64 * 1024
    fetch_message_max_bytes: int = 1024 * 1024
    num_consumer_fetchers: int = 1
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = 60_000
    queued_max_message_chunks: int = 2
    rebalance_max_retries: int = 4
    fetch_min_bytes: int = 1
    fetch_wait_max_ms: int = 100
    rebalance_backoff_ms: int = 2000
    refresh_leader_backoff_ms: int = 200
    offsets_channel_backoff_ms: int = 1000
    offsets_channel_socket_timeout_ms: int = 10_000
    offsets_commit_max_retries: int = 5
    offsets_storage: str = "zookeeper"
    dual_commit_enabled: bool = False
    auto_offset_reset: str = "largest"
    consumer_timeout_ms: int = -1
    client_id: str | None = None
    exclude_internal_topics: bool = True
    partition_assignment_strategy: str = "range"
    group_given: bool = True
    strategy_given: bool = False
    warnings: tuple[str, ...] = ()
    lab: LabSettings = NO_LAB_SETTINGS

    @classmethod
    def from_properties(cls, values: Mapping[str, str], *, default_group: str | None = None) -> ConsumerConfig:
        """Read settings in Kafka's order, so that of several errors the same one is reported.

        Raises IllegalArgumentException (a required one missing, no boolean), its subclass
        NumberFormatException, InvalidConfigException. Unknown keys only warn. The assignment
        strategy is not checked: 0.8.2 takes everything but `roundrobin` for range.
        `default_group`: what a missing group.id stands for; None: it is required, as in 0.8.2.
        """
        properties = Properties(values)
        config = _read(properties, default_group).accepted(default_group)
        return replace(config, warnings=tuple(f"Property {key} is not valid" for key in properties.unknown()))

    def accepted(self, default_group: str | None) -> ConsumerConfig:
        """The settings as a consumer works with them: with the default group if they name none. Raises as
        `from_properties` does."""
        config = self
        if not self.group_given:
            if default_group is None:
                raise missing("group.id")
            config = replace(self, group_id=default_group)
        _validate(config)
        return config

    def properties(self) -> dict[str, str]:
        """The settings that are not at their defaults, as text: what `from_properties`, and a consumer of Kafka 0.8.2,
        reads as these."""
        values = {each.name: getattr(self, each.name) for each in KAFKA_SETTINGS}
        found = {
            _key(each): str(value).lower() if isinstance(value, bool) else str(value)
            for each in KAFKA_SETTINGS
            if (value := values[each.name]) not in {None, _default(each, values)}
        }
        if not self.group_given:
            del found["group.id"]
        return found | dict.fromkeys(self.lab.switched_on, "true")


#: The settings that are Kafka's, in the order in which Kafka reads them.
KAFKA_SETTINGS = tuple(
    each for each in fields(ConsumerConfig) if each.name not in {"group_given", "strategy_given", "warnings", "lab"}
)

#: Settings whose default is the value of another one.
_FOLLOWS = {
    "zookeeper_connection_timeout_ms": "zookeeper_session_timeout_ms",
    "rebalance_backoff_ms": "zookeeper_sync_time_ms",
    "client_id": "group_id",
}


def _key(setting: Field[Any]) -> str:
    return setting.name.replace("_", ".")


def _default(setting: Field[Any], values: Mapping[str, Any]) -> Any:
    """The default of a setting beside the `values` of those that are read before it; MISSING if it has none."""
    if setting.name == "dual_commit_enabled":
        return values["offsets_storage"] == "kafka"
    return values[_FOLLOWS[setting.name]] if setting.name in _FOLLOWS else setting.default


def _read(properties: Properties, default_group: str | None) -> ConsumerConfig:
    values: dict[str, Any] = {}
    for setting in KAFKA_SETTINGS:
        key = _key(setting)
        match _default(setting, values):
            case bool() as switch:
                values[setting.name] = properties.boolean(key, switch)
            case int() as number:
                values[setting.name] = properties.number(key, number)
            case str() as text:
                values[setting.name] = properties.text(key, text)
            case None:
                values[setting.name] = properties.optional(key)
            case _:
                values[setting.name] = properties.required(key, default_group if key == "group.id" else None)
        if key == "offsets.storage":
            values[setting.name] = values[setting.name].lower()
        # Faithful: Kafka compares with fetch.wait.max.ms before that has its value, so with 0.
        if key == "socket.timeout.ms" and values[setting.name] < 0:
            raise IllegalArgumentException(
                "requirement failed: socket.timeout.ms should always be at least fetch.wait.max.ms"
                " to prevent unnecessary socket timeouts"
            )
    return ConsumerConfig(
        **values,
        group_given=properties.given("group.id"),
        strategy_given=properties.given(STRATEGY_KEY),
        lab=read_lab_settings(properties),
    )


def _validate(config: ConsumerConfig) -> None:
    for name, value in (("client.id", config.client_id or ""), ("group.id", config.group_id)):
        if _LEGAL.fullmatch(value) is None:
            raise InvalidConfigException(
                f"{name} {value} is illegal, contains a character other than ASCII alphanumerics, '.', '_' and '-'"
            )
    if config.auto_offset_reset not in ("smallest", "largest"):
        raise InvalidConfigException(
            f"Wrong value {config.auto_offset_reset} of auto.offset.reset in ConsumerConfig; "
            "Valid values are smallest and largest"
        )
    if config.offsets_storage not in ("zookeeper", "kafka"):
        raise InvalidConfigException(
            f"Wrong value {config.offsets_storage} of offsets.storage in consumer config; "
            "Valid values are 'zookeeper' and 'kafka'"
        )
    strategy = config.partition_assignment_strategy
    if config.lab.cures.validate_strategy and strategy not in ("range", "roundrobin"):
        raise InvalidConfigException(
            f"Wrong value {strategy} of partition.assignment.strategy in consumer config; "
            "Valid values are 'range' and 'roundrobin'"
        )
