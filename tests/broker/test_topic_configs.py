"""Settings of topics, as they are kept in ZooKeeper and as logs keep to them while they run."""

from __future__ import annotations

import pytest
from broker_requests import batch, leadership, produced
from broker_stage import BrokerStage
from config_requests import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    E,
    change,
    changed,
    create,
    data,
    described,
    log_config,
    notifications,
    replace_all,
)

from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.broker.topic_configs import CHANGE_EXPIRATION_MS

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
        await stage.ask(leadership(1, 1), 4)  # it alone is in sync, of two replicas
        assert (await produced(stage, batch("x"))).error_code == E.NOT_ENOUGH_REPLICAS
        await changed(stage, change(("min.insync.replicas", SET, "1")))
        assert (await produced(stage, batch("x"))).error_code == E.NONE

    BrokerStage(min_insync_replicas=2).play(story)


def test_an_unclean_election_by_the_topic_s_settings() -> None:
    """The ISR is broker 2 alone, which is gone: broker 1 leads once the topic allows it."""

    async def story(stage: BrokerStage) -> None:
        await create(stage)
        path = "/brokers/topics/t/partitions/0/state"
        lost = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":5,"isr":[2]}'
        await stage.zookeeper.ask(lambda session: session.set(path, lost))
        await stage.zookeeper.ask(lambda session: session.delete("/controller"))
        await stage.settle()
        assert b'"leader":-1,"version":1,"leader_epoch":6,"isr":[2]' in await data(stage, path)
        await changed(stage, change(("unclean.leader.election.enable", SET, "true")))
        assert b'"leader":1,' in await data(stage, path)
        assert (await produced(stage, batch("x"))).error_code == E.NONE

    BrokerStage().play(story)


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


def test_names_of_another_version_of_kafka_are_reported_and_left_alone() -> None:
    async def story(stage: BrokerStage) -> None:
        await create(stage)
        config = b'{"version":1,"config":{"segment.bytes":"888","x.y":"1"}}'
        await write(stage, config, b'{"version":2,"entity_path":"topics/t"}')
        assert log_config(stage).segment_bytes == 888
        assert {"message": "topic t: x.y: kept, and without effect on this broker"} in stage.said("warning")
        (entry,) = (await described(stage, "t", "segment.bytes")).configs
        assert entry.value == "888"

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
