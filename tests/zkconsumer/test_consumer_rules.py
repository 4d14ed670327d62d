"""Rule sets, ids, and what a member refuses to be."""

from __future__ import annotations

import re

import pytest
from group_stage import Stage

from rebalance_lab.assignors import ASSIGNORS, UnknownAssignor
from rebalance_lab.kernel import RandomStream
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import MessageStreamsExistException, NotSupported, UnknownRuleSet
from zkconsumer.identifiers import consumer_id, thread_ids
from zkconsumer.rules import DESCRIBED, SHIPPED, RuleSet, rule_set


def config(strategy: str | None) -> ConsumerConfig:
    settings = {"zookeeper.connect": "h:1", "group.id": "g"}
    if strategy is not None:
        settings["partition.assignment.strategy"] = strategy
    return ConsumerConfig.from_properties(settings)


def test_rule_sets_by_name() -> None:
    assert rule_set("described") is DESCRIBED
    assert rule_set("shipped") is SHIPPED
    with pytest.raises(UnknownRuleSet, match="no rule set is named 'Shipped'; known are described, shipped"):
        rule_set("Shipped")


@pytest.mark.parametrize(
    ("rules", "strategy", "name"),
    [
        (DESCRIBED, None, "ceil"),
        (DESCRIBED, "range", "range"),
        (DESCRIBED, "roundrobin", "roundrobin"),
        (SHIPPED, None, "range"),
        (SHIPPED, "range", "range"),
        (SHIPPED, "roundrobin", "roundrobin"),
        (SHIPPED, "RoundRobin", "range"),
        (SHIPPED, "Range", "range"),
        (SHIPPED, "ceil", "range"),  # 0.8.2 knows one other word, and takes all else for range
    ],
)
def test_the_assignor_of_settings(rules: RuleSet, strategy: str | None, name: str) -> None:
    assert rules.assignor_of(config(strategy)) == (name, ASSIGNORS[name])


def test_the_assignor_of_the_lab_comes_first() -> None:
    assert SHIPPED.assignor_of(config("range"), "ceil") == ("ceil", ASSIGNORS["ceil"])


@pytest.mark.parametrize(("rules", "strategy"), [(DESCRIBED, "rangee"), (SHIPPED, "no-such")])
def test_only_described_refuses_a_strategy_nobody_knows(rules: RuleSet, strategy: str) -> None:
    if rules is SHIPPED:
        assert rules.assignor_of(config(strategy))[0] == "range"
        return
    with pytest.raises(UnknownAssignor, match="no assignor is named 'rangee'; known are "):
        rules.assignor_of(config(strategy))


def test_an_unknown_assignor_of_the_lab_is_refused() -> None:
    with pytest.raises(UnknownAssignor, match="no assignor is named 'best'; known are "):
        SHIPPED.assignor_of(config(None), "best")


def test_a_consumer_id_says_group_host_time_and_chance() -> None:
    made = consumer_id("g1", None, host="web01", wall_ms=1416581234567, random=RandomStream(1, "m1", "consumer id"))
    again = consumer_id("g1", None, host="web01", wall_ms=1416581234567, random=RandomStream(1, "m1", "consumer id"))
    assert re.fullmatch(r"g1_web01-1416581234567-[0-9a-f]{8}", made)
    assert made == again


def test_the_chance_is_the_unpadded_begin_of_a_version_4_uuid() -> None:
    class Zeros:
        def bits(self, count: int) -> int:
            assert count == 64
            return 0xFFF

    made = consumer_id("g", None, host="h", wall_ms=5, random=Zeros())  # type: ignore[arg-type]
    assert made == "g_h-5-4fff"


def test_a_configured_id_needs_no_chance() -> None:
    assert consumer_id("g", "me", host="h", wall_ms=5, random=RandomStream(1, "a", "b")) == "g_me"


def test_threads_are_numbered_from_zero_and_there_is_at_least_one() -> None:
    assert thread_ids("c", 3) == ("c-0", "c-1", "c-2")
    with pytest.raises(AssertionError, match="assertion failed: c asks for 0 streams"):
        thread_ids("c", 0)


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("offsets_storage", "kafka", r"offsets\.storage=kafka needs brokers; use zookeeper"),
        ("rebalance_backoff_ms", -1, r"rebalance\.backoff\.ms=-1: Kafka cannot sleep that long .* use 0 or more"),
        ("num_consumer_fetchers", 0, r"num\.consumer\.fetchers=0: Kafka divides by it .* use 1 or more"),
        ("queued_max_message_chunks", 0, r"queued\.max\.message\.chunks=0: Kafka can make no such queue; use 1"),
        ("zookeeper_session_timeout_ms", 0, r"zookeeper\.session\.timeout\.ms=0: no session lives that long; use 1"),
    ],
)
def test_a_member_refuses_what_works_nowhere(setting: str, value: int | str, text: str) -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(NotSupported, match=text):
            stage.start("m1", **{setting: value})  # type: ignore[arg-type]

    Stage().play(story)


def test_a_member_runs_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        started = await stage.join("m1")
        with pytest.raises(
            MessageStreamsExistException, match="ZookeeperConsumerConnector can create message streams at most once"
        ):
            await started.member.run({"t": 1}, started.closing)

    Stage().play(story)


def test_a_member_with_no_stream_leaves_and_says_why() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        started = stage.start("m1", {"t": 0})
        with pytest.raises(AssertionError, match="asks for 0 streams of a topic"):
            await started.task
        assert await stage.registered() == []

    Stage().play(story)


def test_unknown_settings_are_told_in_the_history() -> None:
    async def story(stage: Stage) -> None:
        await stage.prepare()
        await stage.join("m1", rebalance_retries="4")
        assert stage.warnings("m1") == ["Property rebalance.retries is not valid"]

    Stage().play(story)
