"""The settings of topics and of brokers, each defined once (`LogConfig`, `ServerTopicConfigSynonyms`, Kafka 3.9.1).

From these definitions come what CreateTopics and the Alter APIs accept, what DescribeConfigs answers, and the
configuration of a topic's logs. A setting without a `field` is checked, kept and shown as in Kafka, and has no effect
on this broker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from controller.forms import ControllerForm
from controller.leader_election import Selection
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion, Release

#: The values of a setting, by its kind: bool, str, int, int, float, tuple.
Value = bool | str | int | float | tuple[str, ...]

#: Long.MAX_VALUE: what `LogConfig` writes as None.
NEVER = 2**63 - 1


class Kind(IntEnum):
    """The type of a setting, by its number in DescribeConfigs (`DescribeConfigsResponse.ConfigType`)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class InvalidSetting(Exception):
    """A name or a value that Kafka refuses. `known`: False if it is the name."""

    def __init__(self, message: str, *, known: bool = True) -> None:
        super().__init__(message)
        self.known = known


#: What is wrong with a value; None if nothing is.
Check = Callable[[Value], str | None]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    - `default`: Kafka's; None if there is none.
    - `field`: where the value is found: for a topic's setting in `LogConfig`, for a broker's in its configuration.
    - `server`: of a topic's setting, the broker's setting that has its default; None if none has.
    - `server_unset`: the broker's setting has no default of its own, because another one in hours has it.
    """

    name: str
    kind: Kind
    default: Value | None
    check: Check | None = None
    field: str | None = None
    server: str | None = None
    server_unset: bool = False

    def read(self, text: str) -> Value:
        """The value that a client has written as `text`. Raises InvalidSetting."""
        value = self._parsed(text)
        wrong = None if self.check is None else self.check(value)
        if wrong is not None:
            shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else value
            raise InvalidSetting(f"Invalid value {shown} for configuration {self.name}: {wrong}")
        return value

    def _parsed(self, text: str) -> Value:
        trimmed = text.strip()
        match self.kind:
            case Kind.STRING:
                return trimmed
            case Kind.LIST:
                return tuple(each.strip() for each in trimmed.split(",")) if trimmed else ()
            case Kind.BOOLEAN:
                if trimmed.lower() in ("true", "false"):
                    return trimmed.lower() == "true"
                wrong = "Expected value to be either true or false"
            case Kind.DOUBLE:
                if _DOUBLE.fullmatch(trimmed):
                    return float(trimmed)
                wrong = "Not a number of type DOUBLE"
            case _:
                limit = 2**31 if self.kind is Kind.INT else 2**63
                if _INTEGER.fullmatch(trimmed) and -limit <= int(trimmed) < limit:
                    return int(trimmed)
                wrong = f"Not a number of type {self.kind.name}"
        raise InvalidSetting(f"Invalid value {text} for configuration {self.name}: {wrong}")


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")


def text_of(value: Value | None) -> str | None:
    """A value as Kafka writes it (`ConfigDef.convertToString`)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return None if value is None else str(value)


# -- checks ---------------------------------------------------------------------------------------


def _at_least(least: int) -> Check:
    return lambda value: f"Value must be at least {least}" if value < least else None  # type: ignore[operator]


def _between(least: int, most: int) -> Check:
    at_least = _at_least(least)
    return lambda value: (
        f"Value must be no more than {most}" if value > most else at_least(value)  # type: ignore[operator]
    )


def _one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else f"String must be one of: {', '.join(choices)}"


def _all_of(*choices: str) -> Check:
    one_of = _one_of(*choices)

    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        return next((wrong for each in value if (wrong := one_of(each))), None)

    return check


def _gzip_level(value: Value) -> str | None:
    return None if value == -1 or value in range(1, 10) else "Value must be between 1 and 9 or equal to -1"


def _throttled(value: Value) -> str | None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(_THROTTLED.fullmatch(each) for each in value):
        return None
    return "it must be '*', or a list [partitionId]:[brokerId],[partitionId]:[brokerId],..."


# -- topics ---------------------------------------------------------------------------------------

_DAY_MS = 24 * 3600 * 1000
_B, _S, _I, _L, _D, _LIST = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.LIST
_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

#: name -> the setting, in Kafka's order, in which values are checked.
TOPIC_SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        Setting("segment.bytes", _I, 2**30, _at_least(14), "segment_bytes", "log.segment.bytes"),
        Setting("segment.ms", _L, 7 * _DAY_MS, _at_least(1), "segment_ms", "log.roll.ms", server_unset=True),
        Setting("segment.jitter.ms", _L, 0, _at_least(0), None, "log.roll.jitter.ms", server_unset=True),
        Setting("segment.index.bytes", _I, 10 * 2**20, _at_least(4), "segment_index_bytes", "log.index.size.max.bytes"),
        Setting("flush.messages", _L, NEVER, _at_least(1), "flush_messages", "log.flush.interval.messages"),
        Setting("flush.ms", _L, NEVER, _at_least(0), "flush_ms", "log.flush.interval.ms", server_unset=True),
        Setting("retention.bytes", _L, -1, None, "retention_bytes", "log.retention.bytes"),
        Setting("retention.ms", _L, 7 * _DAY_MS, _at_least(-1), "retention_ms", "log.retention.ms", server_unset=True),
        Setting("max.message.bytes", _I, 2**20 + 12, _at_least(0), "max_message_bytes", "message.max.bytes"),
        Setting("index.interval.bytes", _I, 4096, _at_least(0), "index_interval_bytes", "log.index.interval.bytes"),
        Setting("delete.retention.ms", _L, _DAY_MS, _at_least(0), None, "log.cleaner.delete.retention.ms"),
        Setting("min.compaction.lag.ms", _L, 0, _at_least(0), None, "log.cleaner.min.compaction.lag.ms"),
        Setting("max.compaction.lag.ms", _L, NEVER, _at_least(1), None, "log.cleaner.max.compaction.lag.ms"),
        Setting(
            "file.delete.delay.ms", _L, 60_000, _at_least(0), "file_delete_delay_ms", "log.segment.delete.delay.ms"
        ),
        Setting("min.cleanable.dirty.ratio", _D, 0.5, _between(0, 1), None, "log.cleaner.min.cleanable.ratio"),
        Setting(
            "cleanup.policy", _LIST, ("delete",), _all_of("compact", "delete"), "cleanup_policy", "log.cleanup.policy"
        ),
        Setting(
            "unclean.leader.election.enable",
            _B,
            False,
            None,
            "unclean_leader_election_enable",
            "unclean.leader.election.enable",
        ),
        Setting("min.insync.replicas", _I, 1, _at_least(1), "min_insync_replicas", "min.insync.replicas"),
        Setting("compression.type", _S, "producer", _one_of(*_COMPRESSIONS), None, "compression.type"),
        Setting("compression.gzip.level", _I, -1, _gzip_level, None, "compression.gzip.level"),
        Setting("compression.lz4.level", _I, 9, _between(1, 17), None, "compression.lz4.level"),
        Setting("compression.zstd.level", _I, 3, _between(-131072, 22), None, "compression.zstd.level"),
        Setting("preallocate", _B, False, None, None, "log.preallocate"),
        Setting("message.format.version", _S, "3.0-IV1", None, None, "log.message.format.version"),
        Setting(
            "message.timestamp.type",
            _S,
            "CreateTime",
            _one_of("CreateTime", "LogAppendTime"),
            "message_timestamp_type",
            "log.message.timestamp.type",
        ),
        Setting(
            "message.timestamp.difference.max.ms",
            _L,
            NEVER,
            _at_least(0),
            None,
            "log.message.timestamp.difference.max.ms",
        ),
        Setting(
            "message.timestamp.before.max.ms", _L, NEVER, _at_least(0), None, "log.message.timestamp.before.max.ms"
        ),
        Setting("message.timestamp.after.max.ms", _L, NEVER, _at_least(0), None, "log.message.timestamp.after.max.ms"),
        Setting("leader.replication.throttled.replicas", _LIST, (), _throttled),
        Setting("follower.replication.throttled.replicas", _LIST, (), _throttled),
        Setting("message.downconversion.enable", _B, True, None, None, "log.message.downconversion.enable"),
        Setting("remote.storage.enable", _B, False),
        Setting("local.retention.ms", _L, -2, _at_least(-2), None, "log.local.retention.ms"),
        Setting("local.retention.bytes", _L, -2, _at_least(-2), None, "log.local.retention.bytes"),
        Setting("remote.log.copy.disable", _B, False),
        Setting("remote.log.delete.on.disable", _B, False),
    )
}


def stored_settings(overrides: Mapping[str, str]) -> dict[str, Value]:
    """The values of the settings that a topic has in ZooKeeper. Names that are not known may be there: another version
    of Kafka may have written them. Raises InvalidSetting (`LogConfig.fromProps`)."""
    return {name: each.read(overrides[name]) for name, each in TOPIC_SETTINGS.items() if name in overrides}


def check_settings(overrides: Mapping[str, str]) -> None:
    """Whether a client may give a topic these settings. Raises InvalidSetting (`LogConfig.validate`)."""
    strange = next((name for name in overrides if name not in TOPIC_SETTINGS), None)
    if strange is not None:
        raise InvalidSetting(f"Unknown topic config name: {strange}", known=False)
    values = stored_settings(overrides)
    least, most = (values.get(each, TOPIC_SETTINGS[each].default) for each in _LAGS)
    if least > most:  # type: ignore[operator]
        raise InvalidSetting(f"conflict topic config setting {_LAGS[0]} ({least}) > {_LAGS[1]} ({most})")
    if values.get("remote.log.delete.on.disable") or values.get("remote.log.copy.disable"):
        raise InvalidSetting("`remote.log.delete.on.disable` and `remote.log.copy.disable` need KRaft, not ZooKeeper")
    if values.get("remote.storage.enable"):
        raise InvalidSetting("Tiered storage is disabled on this broker: `remote.storage.enable` cannot be true")


_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")


def log_config(overrides: Mapping[str, str], defaults: LogConfig) -> LogConfig:
    """The configuration of a topic's logs. Raises InvalidSetting."""
    return changed(defaults, {TOPIC_SETTINGS[each].field: value for each, value in stored_settings(overrides).items()})


def changed(defaults: LogConfig, values: Mapping[str | None, Value]) -> LogConfig:
    """`values`: by the names of fields; what `LogConfig` does not have is passed over."""
    fields = msgspec.to_builtins(LogConfig())
    changes = {
        field: None if value == NEVER and fields[field] is None else value
        for field, value in values.items()
        if field in fields
    }
    return msgspec.convert({**msgspec.to_builtins(defaults), **changes}, LogConfig)


def without_effect(overrides: Mapping[str, str]) -> list[str]:
    """Those settings that this broker keeps, and that it does not act on. Raises InvalidSetting."""
    values = stored_settings(overrides)
    kept = [
        each for each in values if TOPIC_SETTINGS[each].field is None and values[each] != TOPIC_SETTINGS[each].default
    ]
    if "compact" in str(overrides.get(_POLICY, "")):
        kept.append(_POLICY)  # it is not compacted; only deletion ends
    return [*kept, *(each for each in overrides if each not in TOPIC_SETTINGS)]


_POLICY = "cleanup.policy"


# -- brokers --------------------------------------------------------------------------------------

#: The settings that only brokers of the lab have.
LAB_PREFIX = "lab."

#: name -> the setting. The command `broker` takes those with a field. None can be changed while the broker runs.
BROKER_SETTINGS: Mapping[str, Setting] = {
    each.name: each
    for each in (
        Setting("broker.id", _I, -1, field="broker_id"),
        Setting("broker.rack", _S, None, field="rack"),
        Setting("num.partitions", _I, 1, _at_least(1), "num_partitions"),
        Setting("default.replication.factor", _I, 1, _at_least(1), "default_replication_factor"),
        Setting("auto.create.topics.enable", _B, True, field="auto_create_topics_enable"),
        Setting("delete.topic.enable", _B, True, field="delete_topic_enable"),
        Setting("max.connections", _I, 2**31 - 1, _at_least(1), "max_connections"),
        Setting("connections.max.idle.ms", _L, 600_000, field="connections_max_idle_ms"),
        Setting("socket.request.max.bytes", _I, 100 * 2**20, _at_least(1), "socket_request_max_bytes"),
        Setting("queued.max.request.bytes", _L, -1),
        Setting("producer.id.expiration.ms", _I, _DAY_MS, _at_least(1), "producer_id_expiration_ms"),
        Setting("log.retention.check.interval.ms", _L, 300_000, _at_least(1), "log_retention_check_interval_ms"),
        Setting("log.flush.scheduler.interval.ms", _L, 3_000, _at_least(1), "log_flush_scheduler_interval_ms"),
        Setting(
            "log.flush.offset.checkpoint.interval.ms",
            _I,
            60_000,
            _at_least(1),
            "log_flush_offset_checkpoint_interval_ms",
        ),
        Setting(
            "replica.high.watermark.checkpoint.interval.ms",
            _L,
            5_000,
            _at_least(1),
            "replica_high_watermark_checkpoint_interval_ms",
        ),
        Setting("auto.leader.rebalance.enable", _B, True, field="auto_leader_rebalance_enable"),
        Setting(
            "leader.imbalance.check.interval.seconds",
            _L,
            300,
            _at_least(1),
            "leader_imbalance_check_interval_seconds",
        ),
        Setting("leader.imbalance.per.broker.percentage", _I, 10, None, "leader_imbalance_per_broker_percentage"),
        Setting("replica.lag.time.max.ms", _L, 30_000, field="replica_lag_time_max_ms"),
        Setting("replica.lag.max.messages", _L, None, _at_least(0), field="replica_lag_max_messages"),
        Setting("lab.acks.before.replication", _B, False, field="lab_acks_before_replication"),
        Setting("lab.isr.read.back", _B, False, field="lab_isr_read_back"),
        Setting(
            "inter.broker.protocol.version",
            _S,
            "2.7",
            _one_of(*ProtocolVersion),
            field="inter_broker_protocol_version",
        ),
        Setting("lab.release", _S, "3.9", _one_of(*Release), field="lab_release"),
        Setting("lab.isr.writer", _S, None, _one_of(*IsrWriter), field="lab_isr_writer"),
        Setting("lab.leader.selection", _S, "2.1", _one_of(*Selection), field="lab_leader_selection"),
        Setting("lab.commits.under.min.isr", _B, False, field="lab_commits_under_min_isr"),
        Setting("lab.forgets.followers", _B, False, field="lab_forgets_followers"),
        Setting("lab.reassignment.awaits.deletion", _B, False, field="lab_reassignment_awaits_deletion"),
        Setting("lab.reassignment.keeps.additions", _B, False, field="lab_reassignment_keeps_additions"),
        Setting("lab.reassignment.keeps.requests", _B, False, field="lab_reassignment_keeps_requests"),
        Setting("lab.reassignment.refuses.dead.targets", _B, False, field="lab_reassignment_refuses_dead_targets"),
        Setting("lab.orders.before.metadata", _B, False, field="lab_orders_before_metadata"),
        Setting("lab.leaders.from.metadata", _B, False, field="lab_leaders_from_metadata"),
        Setting("lab.elects.batch.again", _B, False, field="lab_elects_batch_again"),
        Setting("lab.broker.epochs", _B, True, field="lab_broker_epochs"),
        Setting("lab.controller.form", _S, "2.1", _one_of(*ControllerForm), field="lab_controller_form"),
        Setting("lab.resigns.on.reconnect", _B, False, field="lab_resigns_on_reconnect"),
        Setting("lab.fences.writes", _B, True, field="lab_fences_writes"),
        Setting("lab.fences.orders", _B, True, field="lab_fences_orders"),
        Setting("lab.replication.rules", _S, None, _one_of(*ReplicationRules), field="lab_replication_rules"),
        Setting("replica.fetch.wait.max.ms", _I, 500, field="replica_fetch_wait_max_ms"),
        Setting("replica.fetch.min.bytes", _I, 1, field="replica_fetch_min_bytes"),
        Setting("replica.fetch.max.bytes", _I, 1024 * 1024, _at_least(0), field="replica_fetch_max_bytes"),
        Setting(
            "replica.fetch.response.max.bytes",
            _I,
            10 * 1024 * 1024,
            _at_least(0),
            field="replica_fetch_response_max_bytes",
        ),
        Setting("replica.fetch.backoff.ms", _I, 1000, _at_least(0), field="replica_fetch_backoff_ms"),
        Setting("replica.socket.timeout.ms", _I, 30_000, field="replica_socket_timeout_ms"),
        Setting("controller.socket.timeout.ms", _I, 30_000, field="controller_socket_timeout_ms"),
        Setting("controlled.shutdown.enable", _B, True, field="controlled_shutdown_enable"),
        Setting("controlled.shutdown.max.retries", _I, 3, field="controlled_shutdown_max_retries"),
        Setting("controlled.shutdown.retry.backoff.ms", _L, 5000, field="controlled_shutdown_retry_backoff_ms"),
        Setting("zookeeper.connect", _S, None, field="connect"),
        Setting("zookeeper.session.timeout.ms", _I, 18_000, field="session_timeout_ms"),
        Setting("zookeeper.connection.timeout.ms", _I, 18_000, field="connection_timeout_ms"),
        *(
            Setting(each.server, each.kind, None if each.server_unset else each.default, each.check, each.field)
            for each in TOPIC_SETTINGS.values()
            if each.server is not None
        ),
    )
}


def kafka_properties(defaults: LogConfig, *holders: object) -> dict[str, str]:
    """What a broker of Kafka needs in its properties file for the same settings: those that differ from Kafka's
    defaults, but for the lab's own. The arguments are those of `broker_values`."""
    found = {}
    for name, value in broker_values(defaults, *holders).items():
        text = text_of(value)
        if text is not None and value != BROKER_SETTINGS[name].default and not name.startswith(LAB_PREFIX):
            found[name] = text
    return found


def broker_values(defaults: LogConfig, *holders: object) -> dict[str, Value | None]:
    """name -> the value of each of the broker's settings. `defaults`: of its topics' logs; `holders`: objects that have
    the other values under the names of the settings' fields."""
    of_logs = {each: NEVER if value is None else value for each, value in msgspec.to_builtins(defaults).items()}
    found: dict[str, Value | None] = {}
    for name, setting in BROKER_SETTINGS.items():
        field = setting.field
        if field is None:
            found[name] = setting.default
        elif field in of_logs:
            found[name] = of_logs[field]
        else:
            found[name] = next(getattr(each, field) for each in holders if hasattr(each, field))
    unset = {each.server: each.default for each in TOPIC_SETTINGS.values() if each.server_unset}
    return {name: None if name in unset and value == unset[name] else value for name, value in found.items()}
