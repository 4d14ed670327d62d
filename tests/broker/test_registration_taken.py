"""What a broker does that finds its id taken: by another broker, or by itself in an earlier session."""

from __future__ import annotations

import pytest
from broker_stage import BrokerStage
from controller_stage import CONNECT

from rebalance_lab.broker.registration import BrokerIdTaken, Endpoint, register
from rebalance_lab.zkclient.pipelined import PipelinedClient

HERE, ELSEWHERE = Endpoint("host-b9", 9092), Endpoint("host-b9", 9093)


async def killed_and_started(stage: BrokerStage) -> None:
    """Its session has not ended when it starts again."""
    stage.process.kill()
    await stage.start()


def test_a_broker_that_was_killed_and_starts_again_too_soon_ends() -> None:
    """From 0.9 on, at a start. Its own old session cannot be told from another broker's."""
    with pytest.raises(BrokerIdTaken, match="broker id 1 is taken: /brokers/ids/1 is of session 0x"):
        BrokerStage().play(killed_and_started)


def test_in_0_8_2_it_waits_until_its_old_session_has_ended() -> None:
    stage = BrokerStage(lab_waits_for_registration=True)

    async def story(stage: BrokerStage) -> None:
        epoch, began_us = stage.broker.broker_epoch, stage.tasks.now_us()
        await killed_and_started(stage)
        assert stage.broker.broker_epoch > epoch
        assert stage.tasks.now_us() - began_us >= 2_000_000  # its session timeout, at least once
        (waits,) = {str(each["message"]) for each in stage.said("warning")}
        assert waits.startswith("broker id 1 is taken")
        assert waits.endswith("it has this broker's address, so it is waited for")

    stage.play(story)


@pytest.mark.parametrize("waits", [False, True])
def test_a_registration_at_another_address_is_another_broker_s(waits: bool) -> None:
    async def story(_stage: BrokerStage) -> None:
        raise AssertionError("the broker has registered")

    with pytest.raises(BrokerIdTaken, match="broker id 1 is taken"):
        BrokerStage(others=(1,), lab_waits_for_registration=waits).play(story)


@pytest.mark.parametrize("waits", [False, True])
def test_when_its_session_expires_it_is_registered_again(waits: bool) -> None:
    async def story(stage: BrokerStage) -> None:
        epoch = stage.broker.broker_epoch
        there = (await stage.zookeeper.ask(lambda it: it.exists("/brokers/ids/1"))).value
        assert there is not None
        stage.server.expire(there.ephemeral_owner)
        await stage.tasks.sleep(8_000_000)
        assert stage.broker.broker_epoch > epoch

    BrokerStage(lab_waits_for_registration=waits).play(story)


@pytest.mark.parametrize("endpoint", [HERE, ELSEWHERE])
def test_a_registration_of_the_broker_s_last_session_is_replaced_and_no_other(endpoint: Endpoint) -> None:
    """KAFKA-7165; and KAFKA-14845, as the broker need not have heard of the registration."""

    async def story(stage: BrokerStage) -> None:
        world = stage.world.environment("b9", stage.tasks.process("b9"))
        former, next_one = (PipelinedClient(world.zookeeper.open(CONNECT, 10_000)) for _ in range(2))
        before = await register(former, 9, HERE, timestamp_ms=1, last_session=None)
        session = former.session.session_id
        for other in (None, session + 1000):
            with pytest.raises(BrokerIdTaken):
                await register(next_one, 9, endpoint, timestamp_ms=2, last_session=other)
        assert await register(next_one, 9, endpoint, timestamp_ms=2, last_session=session) > before
        there = (await stage.zookeeper.ask(lambda it: it.exists("/brokers/ids/9"))).value
        assert there is not None
        assert there.ephemeral_owner == next_one.session.session_id

    BrokerStage().play(story)
