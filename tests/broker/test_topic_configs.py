"""Settings of topics and brokers, as clients set and read them, and as logs keep to them while they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from broker_requests import batch, produced
from broker_stage import BrokerStage

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS
from rebalance_lab.broker.topic_configs import CHANGE_EXPIRATION_MS
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages import alter_configs as full
from rebalance_lab.wire.kafka.messages import incremental_alter_configs as incremental
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

E = ErrorCode
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_SOURCE, STATIC, DEFAULT = 1, 4, 5


async def create(stage: BrokerStage, **config: str) -> Any:
    """Topic `t`; in names of settings an underscore stands for a dot."""
    configs = tuple(CreatableTopicConfig(name=_name(each), value=value) for each, value in config.items())
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=configs)
    return (await stage.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 6)).topics[0]


def _name(each: str) -> str:
    return each.replace("_", ".")


def replace_all(config: Mapping[str, str | None], *, name: str = "t", kind: int = TOPIC) -> full.AlterConfigsRequest:
    configs = tuple(full.AlterableConfig(name=each, value=value) for each, value in config.items())
    resource = full.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return full.AlterConfigsRequest(resources=(resource,), validate_only=False)


def change(
    *changes: tuple[str, int, str | None], name: str = "t", kind: int = TOPIC, validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    configs = tuple(
        incremental.AlterableConfig(name=each, config_operation=operation, value=value)
        for each, operation, value in changes
    )
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


async def changed(stage: BrokerStage, request: Any, version: int = 1) -> tuple[ErrorCode, str | None]:
    (response,) = (await stage.ask(request, version)).responses
    await stage.settle()
    return E(response.error_code), response.error_message


async def described(
    stage: BrokerStage, name: str = "t", *keys: str, kind: int = TOPIC, version: int = 4, synonyms: bool = False
) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=synonyms)
    return (await stage.ask(request, version)).results[0]


def log_config(stage: BrokerStage) -> LogConfig:
    return stage.parts.replicas.led(TopicPartition("t", 0)).log.config


async def data(stage: BrokerStage, path: str) -> bytes:
    return (await stage.zookeeper.ask(lambda session: session.get(path))).value.data


async def notifications(stage: BrokerStage) -> list[str]:
    names = (await stage.zookeeper.ask(lambda session: session.children("/config/changes"))).value.names
    return sorted(names)


# -- what is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        (
            "retention.ms",
            str(2**63),
            f"Invalid value {2**63} for configuration retention.ms: Not a number of type LONG",
        ),
        ("segment.bytes", "13", "Invalid value 13 for configuration segment.bytes: Value must be at least 14"),
        ("segment.bytes", str(2**31), "Not a number of type INT"),
        ("flush.messages", "0", "Value must be at least 1"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("compression.type", "zip", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("cleanup.policy", "delete,burn", "String must be one of: compact, delete"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppendTime"),
        ("leader.replication.throttled.replicas", "0:1,x", "Invalid value [0:1, x]"),
        ("remote.storage.enable", "true", "Tiered storage is disabled"),
        ("min.compaction.lag.ms", str(2**63 - 1), None),
        ("retention.bytes", "-7", None),
        ("cleanup.policy", "compact, delete", None),
        ("compression.gzip.level", "-1", None),
        ("min.insync.replicas", " +2 ", None),
        ("leader.replication.throttled.replicas", "*", None),
    ],
)
def test_values_are_checked_alike_at_creation_and_change(name: str, value: str, says: str | None) -> None:
    """`LogConfig` of Kafka 3.9.1."""

    async def story(stage: BrokerStage) -> None:
        created = await create(stage, **{name: value})
        expected = E.NONE if says is None else E.INVALID_CONFIG
        assert E(created.error_code) is expected
        if says is not None:
            assert says in created.error_message
            await create(stage)
        code, message = await changed(stage, change((name, SET, value)))
        assert code is expected
        if says is not None:
            assert message is not None
            assert message.startswith("Invalid config value for resource ConfigResource(type=TOPIC, name='t'): ")
            assert says in message

    BrokerStage().play(story)


def test_settings_that_contradict_each_other() -> None:
    async def story(stage: BrokerStage) -> None:
        created = await create(stage, **{"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})
        assert E(created.error_code) is E.INVALID_CONFIG
        assert created.error_message == (
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)"
        )

    BrokerStage().play(story)


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (change(("x.y", SET, "1")), E.INVALID_CONFIG, "Unknown topic config name: x.y"),
        (change(("x.y", APPEND, "1")), E.INVALID_CONFIG, "Unknown config name: x.y"),
        (change(("segment.bytes", APPEND, "1")), E.INVALID_CONFIG, "append is not allowed for config key"),
        (change(("segment.bytes", SUBTRACT, "1")), E.INVALID_CONFIG, "subtract is not allowed for config key"),
        (change(("segment.bytes", SET, None)), E.INVALID_REQUEST, "Null value not supported for : segment.bytes"),
        (change(("segment.bytes", 7, "99")), E.INVALID_REQUEST, "Unknown operations type 7"),
        (change(*[("segment.ms", SET, "9")] * 2), E.INVALID_REQUEST, "duplicate config keys"),
        (change(name="nowhere"), E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nowhere' does not exist."),
        (change(name=""), E.INVALID_REQUEST, "Default topic resources are not allowed."),
        (change(kind=8, name="1"), E.INVALID_REQUEST, "Unknown resource type 8"),
        (change(kind=99), E.INVALID_REQUEST, "Unknown resource type 99"),
        (change(("num.partitions", SET, "2"), kind=BROKER, name="1"), E.INVALID_REQUEST, "dynamically: num.partitions"),
        (change(("x.y", SET, "2"), kind=BROKER, name=""), E.INVALID_REQUEST, "no such settings: x.y"),
        (change(kind=BROKER, name="2"), E.INVALID_REQUEST, "Unexpected broker id, expected 1"),
        (change(kind=BROKER, name="b"), E.INVALID_REQUEST, "Broker id must be an integer, but it is: b"),
        (change(kind=BROKER, name="1"), E.NONE, None),
    ],
)
def test_changes_that_are_refused(request_: Any, code: ErrorCode, says: str | None) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        found, message = await changed(stage, request_)
        assert found is code
        assert message is None if says is None else says in (message or "")
        assert await notifications(stage) == []

    BrokerStage().play(story)


def test_a_resource_that_occurs_twice_is_refused_and_the_others_are_not() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        (one,) = change(("segment.ms", SET, "9")).resources
        (other,) = change(name="nowhere").resources
        request = incremental.IncrementalAlterConfigsRequest(resources=(one, other, one), validate_only=False)
        found = (await stage.ask(request, 1)).responses
        assert [E(each.error_code) for each in found] == [
            E.INVALID_REQUEST,
            E.UNKNOWN_TOPIC_OR_PARTITION,
            E.INVALID_REQUEST,
        ]

    BrokerStage().play(story)


# -- what is kept, and applied --------------------------------------------------------------------


def test_a_new_topic_has_its_settings_from_the_beginning() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes="4096", flush_messages="1", flush_ms=str(2**63 - 1))
        assert log_config(stage) == LogConfig(segment_bytes=4096, flush_messages=1, retention_bytes=99)
        assert await notifications(stage) == []

    BrokerStage(log=LogConfig(retention_bytes=99)).play(story)


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all_settings(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes="4096")
        assert await changed(stage, replace_all({"retention.ms": "77"}), version) == (E.NONE, None)
        assert log_config(stage) == LogConfig(retention_ms=77)
        assert await data(stage, "/config/topics/t") == b'{"version":1,"config":{"retention.ms":"77"}}'
        assert await notifications(stage) == ["config_change_0000000000"]
        written = await data(stage, "/config/changes/config_change_0000000000")
        assert written == b'{"version":2,"entity_path":"topics/t"}'

    BrokerStage().play(story)


@pytest.mark.parametrize("version", range(2))
def test_incremental_changes_leave_the_other_settings(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes="4096", retention_ms="77")
        changes = ("retention.ms", DELETE, None), ("message.timestamp.type", SET, "LogAppendTime")
        assert await changed(stage, change(*changes), version) == (E.NONE, None)
        assert log_config(stage) == LogConfig(segment_bytes=4096, message_timestamp_type=TimestampType.LOG_APPEND_TIME)

    BrokerStage().play(story)


def test_lists_are_extended_and_shortened() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        for operation, value, expected in (
            (APPEND, "compact,delete", "delete,compact"),
            (SUBTRACT, "delete", "compact"),
            (DELETE, None, "delete"),
        ):
            await changed(stage, change(("cleanup.policy", operation, value)))
            (entry,) = (await described(stage, "t", "cleanup.policy")).configs
            assert entry.value == expected
        assert {"message": "topic t: cleanup.policy: kept, and without effect on this broker"} in stage.said("warning")

    BrokerStage().play(story)


def test_validating_changes_nothing() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        request = change(("segment.ms", SET, "9"), validate_only=True)
        assert await changed(stage, request) == (E.NONE, None)
        assert log_config(stage) == LogConfig()

    BrokerStage().play(story)


def test_a_limit_applies_to_the_next_batch() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        assert (await produced(stage, batch("x" * 200))).error_code == E.NONE
        await changed(stage, change(("max.message.bytes", SET, "100")))
        assert (await produced(stage, batch("x" * 200))).error_code == E.MESSAGE_TOO_LARGE
        await changed(stage, change(("max.message.bytes", DELETE, None)))
        assert (await produced(stage, batch("x" * 200))).error_code == E.NONE

    BrokerStage().play(story)


def test_replicas_in_sync_are_the_topic_s_or_the_broker_s() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        assert (await produced(stage, batch("x"))).error_code == E.NOT_ENOUGH_REPLICAS
        await changed(stage, change(("min.insync.replicas", SET, "1")))
        assert (await produced(stage, batch("x"))).error_code == E.NONE

    BrokerStage(min_insync_replicas=2).play(story)


@pytest.mark.parametrize("graceful", [True, False])
def test_settings_are_there_again_after_a_restart(graceful: bool) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await changed(stage, change(("segment.bytes", SET, "4096")))
        if graceful:
            stage.closing.raise_()
        else:
            stage.process.kill()
        await stage.tasks.sleep(10_000_000)
        await stage.start()
        await stage.settle()
        assert log_config(stage).segment_bytes == 4096

    BrokerStage().play(story)


@pytest.mark.parametrize("wait_us", range(0, 20_000, 1000))
def test_a_change_while_the_log_is_made_is_not_lost(wait_us: int) -> None:
    """Whatever of both comes first: the log has what is written in the end."""

    async def story(stage: BrokerStage) -> None:
        async def change_it() -> None:
            await stage.tasks.sleep(wait_us)
            await stage.parts.topics.write_configuration("t", {"segment.bytes": "999"})

        async with stage.tasks.scope("both") as scope:
            scope.spawn(change_it(), "change")
            await create(stage)
        await stage.settle()
        written = await stage.parts.topics.configuration("t")
        assert str(log_config(stage).segment_bytes) == written.get("segment.bytes", str(2**30))

    BrokerStage(seed=wait_us).play(story)


def test_notifications_go_after_a_quarter_of_an_hour() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await changed(stage, change(("segment.ms", SET, "8")))
        await stage.tasks.sleep(CHANGE_EXPIRATION_MS * 1000)
        await changed(stage, change(("segment.ms", SET, "9")))
        assert await notifications(stage) == ["config_change_0000000001"]
        assert log_config(stage).segment_ms == 9

    BrokerStage().play(story)


@pytest.mark.parametrize(
    "payload",
    [b'{"version":2,"entity_path":"topics/t"}', b'{"version":1,"entity_type":"topics","entity_name":"t"}', b'"t"'],
)
def test_notifications_of_every_version_are_understood(payload: bytes) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await write(stage, b'{"version":1,"config":{"segment.bytes":"888"}}', payload)
        assert log_config(stage).segment_bytes == 888

    BrokerStage().play(story)


async def write(stage: BrokerStage, config: bytes, notification: bytes) -> None:
    await stage.zookeeper.ask(lambda session: session.set("/config/topics/t", config))
    prefix = "/config/changes/config_change_"
    await stage.zookeeper.ask(lambda session: session.create(prefix, notification, sequence=True))
    await stage.settle()


@pytest.mark.parametrize("config", [b"{", b'{"version":1,"config":{"segment.bytes":"many"}}'])
def test_what_cannot_be_used_is_reported_and_changes_nothing(config: bytes) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes="4096")
        await write(stage, config, b'{"version":2,"entity_path":"topics/t"}')
        assert log_config(stage).segment_bytes == 4096
        assert any("/config/topics/t" in str(each["message"]) for each in stage.said("warning"))
        assert E((await described(stage)).error_code) is E.INVALID_CONFIG
        assert await changed(stage, replace_all({"segment.bytes": "888"})) == (E.NONE, None)
        assert log_config(stage).segment_bytes == 888

    BrokerStage().play(story)


def test_what_is_no_notification_is_passed_over() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        await stage.zookeeper.ask(lambda session: session.create("/config/changes/note", b"x"))
        await write(stage, b'{"version":1,"config":{"segment.bytes":"888"}}', b"{")
        assert await changed(stage, change(("segment.ms", SET, "9"))) == (E.NONE, None)
        assert log_config(stage) == LogConfig(segment_bytes=888, segment_ms=9)

    BrokerStage().play(story)


def test_a_change_while_the_session_is_lost_is_applied_in_the_next_one() -> None:
    """Also if its notification has gone meanwhile."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        stage.server.cut(stage.process, to_server=True, to_client=True)
        await stage.tasks.sleep(5_000_000)
        await stage.zookeeper.ask(
            lambda session: session.set("/config/topics/t", b'{"version":1,"config":{"segment.bytes":"888"}}')
        )
        stage.server.heal(stage.process)
        await stage.tasks.sleep(20_000_000)
        assert log_config(stage).segment_bytes == 888

    BrokerStage().play(story)


# -- what is described ----------------------------------------------------------------------------


def test_all_settings_of_a_topic_with_their_sources() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes=" 4096")
        found = await described(stage, synonyms=True)
        assert (found.error_code, found.resource_type, found.resource_name) == (E.NONE, TOPIC, "t")
        entries = {each.name: each for each in found.configs}
        assert entries.keys() == TOPIC_SETTINGS.keys()
        assert not any(each.read_only or each.is_sensitive for each in found.configs)
        shown = {
            name: (each.value, each.config_source, [(s.name, s.value, s.source) for s in each.synonyms])
            for name, each in entries.items()
        }
        assert shown["segment.bytes"] == (
            "4096",
            TOPIC_SOURCE,
            [("segment.bytes", "4096", TOPIC_SOURCE), ("log.segment.bytes", "1073741824", DEFAULT)],
        )
        assert shown["retention.bytes"] == (
            "99",
            STATIC,
            [("log.retention.bytes", "99", STATIC), ("log.retention.bytes", "-1", DEFAULT)],
        )
        assert shown["retention.ms"] == ("604800000", DEFAULT, [])
        assert shown["flush.messages"] == (
            str(2**63 - 1),
            DEFAULT,
            [("log.flush.interval.messages", str(2**63 - 1), 5)],
        )
        assert shown["cleanup.policy"][0] == "delete"
        assert shown["preallocate"][0] == "false"
        types = {name: each.config_type for name, each in entries.items()}
        assert [types[each] for each in ("preallocate", "compression.type", "segment.bytes")] == [1, 2, 3]
        assert [types[each] for each in ("segment.ms", "min.cleanable.dirty.ratio", "cleanup.policy")] == [5, 6, 7]

    BrokerStage(log=LogConfig(retention_bytes=99)).play(story)


@pytest.mark.parametrize("version", range(5))
def test_every_version_describes_those_that_are_asked_for(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage, segment_bytes="4096")
        found = await described(stage, "t", "segment.bytes", "segment.ms", "x", version=version)
        assert [(each.name, each.value) for each in found.configs] == [
            ("segment.bytes", "4096"),
            ("segment.ms", "604800000"),
        ]
        if version == 0:
            assert [each.is_default for each in found.configs] == [False, True]
        else:
            assert [each.config_source for each in found.configs] == [TOPIC_SOURCE, DEFAULT]
            assert not any(each.synonyms for each in found.configs)

    BrokerStage().play(story)


def test_the_settings_of_a_broker() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await described(stage, "1", kind=BROKER)
        entries = {each.name: each for each in found.configs}
        assert entries.keys() == BROKER_SETTINGS.keys()
        assert all(each.read_only for each in found.configs)
        shown = {name: (each.value, each.config_source) for name, each in entries.items()}
        assert shown["broker.id"] == ("1", STATIC)
        assert shown["num.partitions"] == ("4", STATIC)
        assert shown["delete.topic.enable"] == ("true", DEFAULT)
        assert shown["broker.rack"] == (None, DEFAULT)
        assert shown["min.insync.replicas"] == ("1", DEFAULT)
        assert shown["log.retention.ms"] == (None, DEFAULT)
        assert shown["log.roll.ms"] == ("7", STATIC)
        assert shown["zookeeper.session.timeout.ms"] == ("2000", STATIC)
        assert (await described(stage, "", kind=BROKER)).configs == ()

    BrokerStage(num_partitions=4, log=LogConfig(segment_ms=7)).play(story)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", E.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a b", E.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", E.INVALID_REQUEST),
        (8, "1", E.INVALID_REQUEST),
        (0, "1", E.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described(kind: int, name: str, code: ErrorCode) -> None:
    async def story(stage: BrokerStage) -> None:
        found = await described(stage, name, kind=kind)
        assert (E(found.error_code), found.configs) == (code, ())
        assert found.error_message

    BrokerStage().play(story)


# -- without ZooKeeper ----------------------------------------------------------------------------


def test_without_zookeeper_a_client_is_told_in_time() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        stage.server.cut(stage.process, to_server=True, to_client=True)
        assert E((await described(stage)).error_code) is E.REQUEST_TIMED_OUT
        code, message = await changed(stage, change(("segment.ms", SET, "9")))
        assert code is E.REQUEST_TIMED_OUT
        assert "ZooKeeper has not answered in 30000 ms" in (message or "")

    BrokerStage().play(story)
