"""Controllers on a simulated ZooKeeper: elections, what a reign writes and sends, and how it ends."""

from __future__ import annotations

import pytest
from controller_stage import Candidate, Stage

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.wire.cluster import preferred_election_payload
from rebalance_lab.wire.paths import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    PREFERRED_ELECTION,
    partition_state_path,
    topic_path,
)
from rebalance_lab.world.ports import Set


def test_the_first_controller_has_epoch_1() -> None:
    async def story(stage: Stage) -> None:
        first = stage.candidate(1)
        await stage.settle()
        assert first.epochs == [1]
        assert await stage.data(CONTROLLER_EPOCH) == b"1"
        assert await stage.data(CONTROLLER) == (
            b'{"version":2,"brokerid":1,"timestamp":"1000","kraftControllerEpoch":-1}'
        )

    Stage().play(story)


@pytest.mark.parametrize("seed", range(20))
def test_of_many_candidates_one_is_elected_and_each_epoch_has_one(seed: int) -> None:
    """Claim E1."""

    async def story(stage: Stage) -> None:
        candidates = [stage.candidate(each) for each in range(5)]
        for expected in range(1, 5):
            await stage.tasks.sleep(4_000_000)
            elected = [each for each in candidates if each.epochs]
            assert sorted(epoch for each in elected for epoch in each.epochs) == list(range(1, expected + 1))
            (holder,) = [each for each in candidates if each.epochs and not each.ended]
            stage.server.expire(holder.session.session_id)

    Stage(seed).play(story)


def losing_the_reply_to_an_election(stage: Stage) -> list[Transaction]:
    """The first broker that is elected does not get the reply; its transaction, once there is one."""
    lost: list[Transaction] = []

    def elected(transaction: Transaction) -> None:
        if transaction.path == CONTROLLER and not lost:
            lost.append(transaction)
            stage.server.lose_next_reply(transaction.session_id)

    stage.server.on_transaction(elected)
    return lost


def test_a_lost_reply_to_the_election_is_read_back() -> None:
    async def story(stage: Stage) -> None:
        lost = losing_the_reply_to_an_election(stage)
        first = stage.candidate(1)
        await stage.tasks.sleep(4_000_000)
        assert lost
        assert first.epochs == [1]
        assert await stage.data(CONTROLLER_EPOCH) == b"1"

    Stage().play(story)


def test_without_reading_back_the_reply_that_was_lost_is_taken_for_a_defeat() -> None:
    async def story(stage: Stage) -> None:
        lost = losing_the_reply_to_an_election(stage)
        first = stage.candidate(1, reads_back=False)
        await stage.tasks.sleep(4_000_000)
        second = stage.candidate(2)
        await stage.settle()
        assert lost
        assert (first.epochs, second.epochs) == ([], [])
        stage.server.expire(lost[0].session_id)
        await stage.tasks.sleep(4_000_000)
        assert second.epochs == [2]

    Stage().play(story)


def test_a_new_topic_is_led_and_its_state_written() -> None:
    async def story(stage: Stage) -> None:
        for each in (1, 2):
            await stage.register(each)
        first = stage.candidate(1)
        await stage.settle()
        await stage.write_topic("t", {0: (2, 1)})
        await stage.settle()
        assert await stage.data(partition_state_path("t", 0)) == (
            b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
        )
        (reign,) = first.reigns
        assert reign.leaders() == [(2, "t", 0, 2, 0), (1, "t", 0, 2, 0)]
        assert reign.brokers == (1, 2)

    Stage().play(story)


def test_a_topic_grows() -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.write_topic("t", {0: (1,)})
        first = stage.candidate(1)
        await stage.settle()
        await stage.write_topic("t", {0: (1,), 1: (1,)}, grow=True)
        await stage.settle()
        assert first.reigns[0].leaders() == [(1, "t", 0, 1, 0), (1, "t", 1, 1, 0)]

    Stage().play(story)


def test_the_controller_elects_for_what_a_dead_broker_led() -> None:
    async def story(stage: Stage) -> None:
        for each in (1, 2):
            await stage.register(each)
        await stage.write_topic("t", {0: (1, 2)})
        stage.candidate(2)
        await stage.settle()
        await stage.remove("/brokers/ids/1")
        await stage.settle()
        assert await stage.data(partition_state_path("t", 0)) == (
            b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[2]}'
        )

    Stage().play(story)


def test_a_successor_elects_for_what_the_dead_controller_led() -> None:
    async def story(stage: Stage) -> None:
        for each in (1, 2):
            await stage.register(each)
        await stage.write_topic("t", {0: (1, 2)})
        first = stage.candidate(1)
        await stage.settle()
        second = stage.candidate(2)
        await stage.settle()
        first.process.kill()
        await stage.remove("/brokers/ids/1")
        await stage.tasks.sleep(6_000_000)
        assert second.epochs == [2]
        assert await stage.data(partition_state_path("t", 0)) == (
            b'{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":1,"isr":[2]}'
        )

    Stage().play(story)


def test_a_deposed_controller_writes_nothing() -> None:
    """Claim E3: another has raised the epoch, and this one does not know yet."""

    async def story(stage: Stage) -> None:
        await stage.register(1)
        first = stage.candidate(1)
        await stage.settle()
        await stage.other.multi([Set(CONTROLLER_EPOCH, b"2", 1)])
        await stage.write_topic("t", {0: (1,)})
        await stage.settle()
        assert not await stage.there(partition_state_path("t", 0))
        assert "another controller was elected after epoch 1" in str(first.said("resigned"))

    Stage().play(story)


def test_a_controller_whose_znode_is_gone_stands_again() -> None:
    async def story(stage: Stage) -> None:
        first = stage.candidate(1)
        await stage.settle()
        await stage.remove(CONTROLLER)
        await stage.settle()
        assert first.epochs == [1, 2]

    Stage().play(story)


def test_a_controller_that_resigns_in_a_session_that_goes_on_lets_nobody_be_elected() -> None:
    """KAFKA-13461."""

    async def story(stage: Stage) -> None:
        await stage.register(1)
        first = stage.candidate(1)
        await stage.settle()
        second = stage.candidate(2)
        first.controller.reelect("connected again")
        await stage.write_topic("t", {0: (1,)})
        await stage.tasks.sleep(4_000_000)
        assert first.said("resigned") == [{"why": "connected again"}]
        assert (first.epochs, second.epochs) == ([1], [])
        assert await stage.there(CONTROLLER)
        await stage.remove(CONTROLLER)
        await stage.settle()
        assert [*first.epochs[1:], *second.epochs] == [2]

    Stage().play(story)


def test_a_broker_that_does_not_reign_has_nothing_to_resign() -> None:
    async def story(stage: Stage) -> None:
        stage.candidate(1)
        await stage.settle()
        second = stage.candidate(2)
        await stage.settle()
        second.controller.reelect("connected again")
        await stage.settle()
        assert second.said("resigned") == []

    Stage().play(story)


def test_a_deleted_topic_is_gone_with_all_its_znodes() -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.write_topic("t", {0: (1,), 1: (1,)})
        stage.candidate(1)
        await stage.settle()
        await stage.other.ensure_path("/config/topics/t")
        await stage.other.create_if_missing(f"{DELETE_TOPICS}/t")
        await stage.settle()
        for path in (topic_path("t"), "/config/topics/t", f"{DELETE_TOPICS}/t"):
            assert not await stage.there(path), path

    Stage().play(story)


def test_a_topic_stays_until_its_replicas_are_deleted() -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.write_topic("t", {0: (1,)})
        stage.candidate(1)
        await stage.settle()
        await stage.other.create_if_missing(f"{DELETE_TOPICS}/t")
        await stage.settle()
        assert await stage.there(topic_path("t"))

    Stage(silent=True).play(story)


def test_a_request_to_delete_what_does_not_exist_is_dropped() -> None:
    async def story(stage: Stage) -> None:
        stage.candidate(1)
        await stage.settle()
        await stage.other.create_if_missing(f"{DELETE_TOPICS}/x")
        await stage.settle()
        assert not await stage.there(f"{DELETE_TOPICS}/x")

    Stage().play(story)


def test_a_controller_that_deletes_no_topics_drops_the_requests() -> None:
    """`delete.topic.enable` is false: a request that is there at its election, and one that comes later."""

    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.write_topic("t", {0: (1,)})
        await stage.other.create_if_missing(f"{DELETE_TOPICS}/t")
        stage.candidate(1)
        for _ in range(2):
            await stage.settle()
            assert not await stage.there(f"{DELETE_TOPICS}/t")
            assert await stage.there(partition_state_path("t", 0))
            await stage.other.create_if_missing(f"{DELETE_TOPICS}/t")

    Stage(deletes_topics=False).play(story)


async def lose_the_isr(stage: Stage, config: bytes | None) -> None:
    """Topic `t` has a live replica that is not in sync, and settings."""
    for each in (1, 2):
        await stage.register(each)
    await stage.write_topic("t", {0: (1, 2)})
    state = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    await stage.other.ensure_path(f"{topic_path('t')}/partitions/0")
    await stage.other.create_if_missing(partition_state_path("t", 0), state)
    await stage.other.ensure_path("/config/topics")
    if config is not None:
        await stage.other.create_if_missing("/config/topics/t", config)
    await stage.remove("/brokers/ids/1")


UNCLEAN = b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}'


@pytest.mark.parametrize(("config", "leader"), [(UNCLEAN, b"2"), (b"{", b"-1"), (None, b"-1")])
def test_a_topic_s_settings_decide_on_unclean_elections(config: bytes | None, leader: bytes) -> None:
    async def story(stage: Stage) -> None:
        await lose_the_isr(stage, config)
        stage.candidate(2)
        await stage.settle()
        assert b'"leader":%b,' % leader in await stage.data(partition_state_path("t", 0))

    Stage().play(story)


def test_a_change_of_settings_elects_at_once() -> None:
    async def story(stage: Stage) -> None:
        await lose_the_isr(stage, b'{"version":1,"config":{}}')
        candidate = stage.candidate(2)
        await stage.settle()
        await stage.other.ask(lambda session: session.set("/config/topics/t", UNCLEAN))
        candidate.controller.settings_changed({"t"})
        await stage.settle()
        assert b'"leader":2,' in await stage.data(partition_state_path("t", 0))

    Stage().play(story)


def test_a_topic_that_cannot_be_read_is_left_out_and_named() -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.other.create_if_missing(topic_path("bad"), b"{")
        await stage.write_topic("t", {0: (1,)})
        first = stage.candidate(1)
        await stage.settle()
        assert first.reigns[0].leaders() == [(1, "t", 0, 1, 0)]
        assert "topic bad is left out: /brokers/topics/bad holds" in str(first.said("log"))

    Stage().play(story)


@pytest.mark.parametrize("path", ["/brokers/ids/x", "/brokers/ids/7", partition_state_path("t", 0)])
def test_what_cannot_be_read_ends_no_controller(path: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        await stage.write_topic("t", {0: (1,), 1: (1,)})
        await stage.other.ensure_path(path)
        first = stage.candidate(1)
        await stage.settle()
        assert (1, "t", 1, 1, 0) in first.reigns[0].leaders()
        assert (first.epochs, first.said("resigned")) == ([1], [])

    Stage().play(story)


def test_a_controller_that_fails_resigns_and_another_is_elected() -> None:
    async def story(stage: Stage) -> None:
        await stage.register(1)
        first, second = stage.candidate(1), stage.candidate(2)
        await stage.settle()
        holder, other = (first, second) if first.epochs else (second, first)
        holder.reigns[0].send = None  # type: ignore[method-assign]
        await stage.write_topic("t", {0: (1,)})
        await stage.tasks.sleep(3_000_000)
        assert "TypeError" in str(holder.said("resigned"))
        assert not holder.ended
        assert 2 in {*holder.epochs, *other.epochs}

    Stage().play(story)


def test_an_epoch_that_is_no_number_elects_nobody_and_ends_nobody() -> None:
    async def story(stage: Stage) -> None:
        await stage.other.create_if_missing(CONTROLLER_EPOCH, b"x")
        first = stage.candidate(1)
        await stage.settle()
        assert first.epochs == []
        assert "no controller can be elected" in str(first.said("log")[0])
        await stage.other.multi([Set(CONTROLLER_EPOCH, b"4", 0)])
        await stage.tasks.sleep(2_000_000)
        assert first.epochs == [5]

    Stage().play(story)


# -- preferred leaders ----------------------------------------------------------------------------


async def led_by_its_second(stage: Stage) -> Candidate:
    """Brokers 1 and 2 are registered; broker 2 leads, and both are in sync."""
    for each in (1, 2):
        await stage.register(each)
    await stage.write_topic("t", {0: (1, 2)})
    first = stage.candidate(2)
    await stage.settle()
    state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
    await stage.other.multi([Set(partition_state_path("t", 0), state, 0)])
    first.process.kill()
    await stage.tasks.sleep(6_000_000)
    return stage.candidate(2)


PREFERRED_LEADS = b'{"controller_epoch":2,"leader":1,"version":1,"leader_epoch":1,"isr":[2,1]}'


def test_a_znode_asks_for_preferred_leaders_and_goes_each_time() -> None:
    async def story(stage: Stage) -> None:
        second = await led_by_its_second(stage)
        await stage.settle()
        for expected in (PREFERRED_LEADS, PREFERRED_LEADS):
            await stage.create(PREFERRED_ELECTION, preferred_election_payload([("t", 0)]))
            await stage.settle()
            assert await stage.data(partition_state_path("t", 0)) == expected
            assert not await stage.there(PREFERRED_ELECTION)
        assert second.epochs == [2]

    Stage().play(story)


def test_a_znode_from_before_its_election_is_taken_up_by_the_controller() -> None:
    async def story(stage: Stage) -> None:
        await stage.create(PREFERRED_ELECTION, preferred_election_payload([("t", 0)]))
        await led_by_its_second(stage)
        await stage.settle()
        assert not await stage.there(PREFERRED_ELECTION)

    Stage().play(story)


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"version":1,"partitions":[{"topic":"t"}]}'])
def test_a_znode_that_cannot_be_read_is_reported_and_goes(data: bytes) -> None:
    async def story(stage: Stage) -> None:
        first = stage.candidate(1)
        await stage.settle()
        await stage.create(PREFERRED_ELECTION, data)
        await stage.settle()
        assert not await stage.there(PREFERRED_ELECTION)
        assert f"no preferred leader is elected: {PREFERRED_ELECTION} holds" in str(first.said("log"))
        assert first.epochs == [1]

    Stage().play(story)
