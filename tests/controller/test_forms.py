"""The forms of the controller on a simulated ZooKeeper: how each is elected, writes and gives up."""

from __future__ import annotations

from typing import TypeVar

import pytest
from controller_stage import Stage

from controller.election import ControllerMoved, Elected, elect
from controller.forms import ControllerForm
from rebalance_lab.history.transactions import Transaction
from rebalance_lab.wire.paths import CONTROLLER, CONTROLLER_EPOCH, partition_state_path
from rebalance_lab.world.ports import Node, Reply
from rebalance_lab.zkclient.pipelined import PipelinedClient, Request

T = TypeVar("T")

OLD = [ControllerForm.V0_8_2, ControllerForm.V1_1]


def together(transactions: list[Transaction], path: str) -> set[tuple[str, ...]]:
    """The paths that were written in one transaction with this one."""
    zxids = {each.zxid for each in transactions if each.path == path}
    return {tuple(each.path for each in transactions if each.zxid == zxid) for zxid in zxids}


@pytest.mark.parametrize("form", ControllerForm)
def test_every_form_elects_and_writes_states(form: ControllerForm) -> None:
    async def story(stage: Stage) -> None:
        seen: list[Transaction] = []
        stage.server.on_transaction(seen.append)
        for broker in (1, 2):
            await stage.register(broker)
        first = stage.candidate(1, form)
        await stage.settle()
        await stage.write_topic("t", {0: (2, 1)})
        await stage.settle()
        assert first.epochs == [1]
        assert await stage.data(CONTROLLER_EPOCH) == b"1"
        assert await stage.there(partition_state_path("t", 0))
        alone = together(seen, CONTROLLER) == {(CONTROLLER,)}
        assert alone is not form.in_one_transaction

    Stage().play(story)


@pytest.mark.parametrize("form", ControllerForm)
@pytest.mark.parametrize("seed", range(10))
def test_each_election_has_an_epoch_of_its_own(form: ControllerForm, seed: int) -> None:
    async def story(stage: Stage) -> None:
        candidates = [stage.candidate(each, form) for each in range(4)]
        for expected in range(1, 4):
            await stage.tasks.sleep(4_000_000)
            assert sorted(epoch for each in candidates for epoch in each.epochs) == list(range(1, expected + 1))
            (holder,) = [each for each in candidates if each.epochs and not each.ended]
            stage.server.expire(holder.session.session_id)

    Stage(seed).play(story)


class Overtaken(PipelinedClient):
    """A client that has read the controller epoch just before another raises it to 77."""

    async def ask(self, request: Request[T]) -> Reply[T]:
        reply = await PipelinedClient.ask(self, request)
        if isinstance(reply.value, Node):
            await PipelinedClient.ask(self, lambda session: session.set(CONTROLLER_EPOCH, b"77"))
        return reply


async def _overtaken(stage: Stage, form: ControllerForm) -> Elected:
    await stage.other.ask(lambda session: session.create(CONTROLLER_EPOCH, b"4"))
    return await elect(Overtaken(stage.other.session), 3, timestamp_ms=1, form=form)


def test_0_8_2_goes_on_with_the_epoch_that_it_has_read() -> None:
    async def story(stage: Stage) -> None:
        assert await _overtaken(stage, ControllerForm.V0_8_2) == Elected(4, None)
        assert await stage.data(CONTROLLER_EPOCH) == b"77"
        assert await stage.there(CONTROLLER)

    Stage().play(story)


def test_1_1_gives_up_and_deletes_the_znode() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(ControllerMoved, match="another broker than 3 has raised controller epoch 4"):
            await _overtaken(stage, ControllerForm.V1_1)
        assert not await stage.there(CONTROLLER)

    Stage().play(story)


def test_2_1_is_not_elected() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(ControllerMoved, match="broker 3 was not elected, and there is no controller"):
            await _overtaken(stage, ControllerForm.V2_1)
        assert await stage.data(CONTROLLER_EPOCH) == b"77"
        assert not await stage.there(CONTROLLER)

    Stage().play(story)


@pytest.mark.parametrize("form", OLD)
def test_the_first_epoch_is_created_and_another_may_be_faster(form: ControllerForm) -> None:
    async def story(stage: Stage) -> None:
        assert await elect(stage.other, 3, timestamp_ms=1, form=form) == Elected(1, None)
        with pytest.raises(ControllerMoved, match="another broker than 4 has created /controller"):
            await elect(PipelinedClient(stage.candidate(4, form).session), 4, timestamp_ms=1, form=form)

    Stage().play(story)


@pytest.mark.parametrize("form", OLD)
def test_a_lost_reply_to_the_creation_is_known_by_its_session(form: ControllerForm) -> None:
    async def story(stage: Stage) -> None:
        lost: list[Transaction] = []

        def created(transaction: Transaction) -> None:
            if transaction.path == CONTROLLER and not lost:
                lost.append(transaction)
                stage.server.lose_next_reply(transaction.session_id)

        stage.server.on_transaction(created)
        first = stage.candidate(1, form)
        await stage.tasks.sleep(4_000_000)
        assert lost
        assert first.epochs == [1]

    Stage().play(story)
