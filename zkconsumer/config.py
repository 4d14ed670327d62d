"""The consumer's settings: names, defaults, units and errors of 0.8.2 (`kafka.consumer.ConsumerConfig`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from zkconsumer.errors import IllegalArgumentException, InvalidConfigException
from zkconsumer.lab_settings import NO_LAB_SETTINGS, LabSettings, read_lab_settings
from zkconsumer.properties import Properties

_LEGAL = re.compile(r"[a-zA-Z0-9._-]*")

STRATEGY_KEY = "partition.assignment.strategy"


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Every setting of Kafka 0.8.2's ConsumerConfig; dots of the names are underscores here.

    Units are in the names where Kafka has them there; sizes are bytes; `rebalance_max_retries`
    counts *attempts*; `queued_max_message_chunks` is per queue, `num_consumer_fetchers` per
    broker. `zookeeper_sync_time_ms` does nothing but give `rebalance_backoff_ms` its default.
    `group_given`, `strategy_given`: the group, the assignment strategy was set and is not just the
    default.
    `warnings`: what Kafka would have logged. `lab`: the lab's own settings, which stand among
    Kafka's.
    """

    group_id: str
    zookeeper_connect: str
    consumer_id: str | None
    client_id: str
    zookeeper_session_timeout_ms: int
    zookeeper_connection_timeout_ms: int
    zookeeper_sync_time_ms: int
    rebalance_max_retries: int
    rebalance_backoff_ms: int
    auto_commit_enable: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    consumer_timeout_ms: int
    queued_max_message_chunks: int
    fetch_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    socket_timeout_ms: int
    socket_receive_buffer_bytes: int
    num_consumer_fetchers: int
    refresh_leader_backoff_ms: int
    partition_assignment_strategy: str
    exclude_internal_topics: bool
    offsets_storage: str
    dual_commit_enabled: bool
    offsets_channel_backoff_ms: int
    offsets_channel_socket_timeout_ms: int
    offsets_commit_max_retries: int
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
        config = _read(properties, default_group)
        _validate(config)
        return replace(config, warnings=tuple(f"Property {key} is not valid" for key in properties.unknown()))


def _read(properties: Properties, default_group: str | None) -> ConsumerConfig:
    number = properties.number
    connect = properties.required("zookeeper.connect")
    session_timeout_ms = number("zookeeper.session.timeout.ms", 6000)
    connection_timeout_ms = number("zookeeper.connection.timeout.ms", session_timeout_ms)
    sync_time_ms = number("zookeeper.sync.time.ms", 2000)
    group_id = properties.required("group.id", default_group)
    consumer_id = properties.optional("consumer.id")
    socket_timeout_ms = number("socket.timeout.ms", 30_000)
    # Faithful: Kafka compares with fetch.wait.max.ms before that has its value, so with 0.
    if socket_timeout_ms < 0:
        raise IllegalArgumentException(
            "requirement failed: socket.timeout.ms should always be at least fetch.wait.max.ms"
            " to prevent unnecessary socket timeouts"
        )
    offsets_storage = properties.text("offsets.storage", "zookeeper").lower()
    return ConsumerConfig(
        group_id=group_id,
        zookeeper_connect=connect,
        consumer_id=consumer_id,
        zookeeper_session_timeout_ms=session_timeout_ms,
        zookeeper_connection_timeout_ms=connection_timeout_ms,
        zookeeper_sync_time_ms=sync_time_ms,
        socket_timeout_ms=socket_timeout_ms,
        socket_receive_buffer_bytes=number("socket.receive.buffer.bytes", 64 * 1024),
        fetch_message_max_bytes=number("fetch.message.max.bytes", 1024 * 1024),
        num_consumer_fetchers=number("num.consumer.fetchers", 1),
        auto_commit_enable=properties.boolean("auto.commit.enable", True),
        auto_commit_interval_ms=number("auto.commit.interval.ms", 60_000),
        queued_max_message_chunks=number("queued.max.message.chunks", 2),
        rebalance_max_retries=number("rebalance.max.retries", 4),
        fetch_min_bytes=number("fetch.min.bytes", 1),
        fetch_wait_max_ms=number("fetch.wait.max.ms", 100),
        rebalance_backoff_ms=number("rebalance.backoff.ms", sync_time_ms),
        refresh_leader_backoff_ms=number("refresh.leader.backoff.ms", 200),
        offsets_channel_backoff_ms=number("offsets.channel.backoff.ms", 1000),
        offsets_channel_socket_timeout_ms=number("offsets.channel.socket.timeout.ms", 10_000),
        offsets_commit_max_retries=number("offsets.commit.max.retries", 5),
        offsets_storage=offsets_storage,
        dual_commit_enabled=properties.boolean("dual.commit.enabled", offsets_storage == "kafka"),
        auto_offset_reset=properties.text("auto.offset.reset", "largest"),
        consumer_timeout_ms=number("consumer.timeout.ms", -1),
        client_id=properties.text("client.id", group_id),
        exclude_internal_topics=properties.boolean("exclude.internal.topics", True),
        partition_assignment_strategy=properties.text(STRATEGY_KEY, "range"),
        group_given=properties.given("group.id"),
        strategy_given=properties.given(STRATEGY_KEY),
        lab=read_lab_settings(properties),
    )


def _validate(config: ConsumerConfig) -> None:
    for name, value in (("client.id", config.client_id), ("group.id", config.group_id)):
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
