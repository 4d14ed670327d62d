"""Settings of topics and brokers, as clients set them and read them again."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from broker_stage import BrokerStage
from config_requests import (
    APPEND,
    BROKER,
    DEFAULT,
    DELETE,
    SET,
    STATIC,
    SUBTRACT,
    TOPIC,
    TOPIC_SOURCE,
    E,
    change,
    changed,
    create,
    described,
    notifications,
)

from rebalance_lab.broker.broker import BrokerSettings
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, broker_values
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages import incremental_alter_configs as incremental
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

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
        (change(("x.y", DELETE, None), kind=BROKER, name="1"), E.NONE, None),
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


#: Planted mistakes and older behaviours: plans of trials set them, and no name does.
OF_TRIALS_ONLY = {
    "lab_controller_bug",
    "lab_placement_bug",
    "lab_refuses_before_append",
    "lab_acks_before_replication",
    "lab_isr_read_back",
    "lab_election_read_back",
    "lab_assumes_whole_isr",
    "lab_commits_alone",
    "lab_counts_diverging",
    "lab_ignores_min_isr",
    "lab_leads_as_first_of_isr",
    "lab_leader_grace",
    "lab_joins_caught_up",
    "lab_obeys_after_ms",
    "lab_obeys_late_orders",
    "lab_keeps_fetchers",
    "lab_keeps_metadata",
    "lab_never_answers",
    "lab_keeps_registration",
    "lab_never_resigns",
    "lab_resigns_under_lock",
    "lab_broker_epochs",
    "lab_fences_lives",
    "lab_accepts_newer_epochs",
    "lab_waits_for_registration",
    "lab_halts",
    "lab_removes_partitions",
}


def test_every_field_of_a_configuration_is_a_setting() -> None:
    of_topics = {each.field for each in TOPIC_SETTINGS.values()}
    of_brokers = {each.field for each in BROKER_SETTINGS.values()}
    assert {each.name for each in msgspec.structs.fields(LogConfig)} <= of_topics | of_brokers
    names = {each.name for each in dataclasses.fields(BrokerConfig)}
    assert names - OF_TRIALS_ONLY <= of_brokers


def test_a_broker_that_is_told_nothing_has_the_defaults_that_it_describes() -> None:
    started = broker_values(
        LogConfig(), BrokerConfig(broker_id=1), BrokerSettings(config=BrokerConfig(broker_id=1), connect="")
    )
    without = {"broker.id", "zookeeper.connect"}
    for name, setting in BROKER_SETTINGS.items():
        if name not in without:
            assert started[name] == setting.default, name


def test_who_creates_a_topic_is_told_its_settings() -> None:
    """From version 5 on, as DescribeConfigs tells them."""

    async def story(stage: BrokerStage) -> None:
        config = CreatableTopicConfig(name="retention.ms", value="5000")
        wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=(config,))
        request = CreateTopicsRequest(topics=(wanted,), timeout_ms=5000, validate_only=True)
        (before,) = (await stage.ask(request, 5)).topics
        (created,) = (await stage.ask(msgspec.structs.replace(request, validate_only=False), 5)).topics
        assert before.configs == created.configs
        told = {each.name: (each.value, each.config_source, each.read_only) for each in created.configs}
        assert told["retention.ms"] == ("5000", TOPIC_SOURCE, False)
        assert told["segment.ms"] == ("7", STATIC, False)
        found = await described(stage, "t", kind=TOPIC)
        assert told == {each.name: (each.value, each.config_source, each.read_only) for each in found.configs}
        (refused,) = (await stage.ask(request, 5)).topics
        assert (refused.error_code, refused.configs) == (ErrorCode.TOPIC_ALREADY_EXISTS, ())

    BrokerStage(log=LogConfig(segment_ms=7)).play(story)


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
