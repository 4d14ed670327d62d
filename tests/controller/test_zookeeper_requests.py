"""What a controller asks of ZooKeeper: how much a takeover costs in each form, and what lists that wait cost."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import pytest
from controller_stage import Candidate, Stage

from controller.forms import ControllerForm
from rebalance_lab.kernel import Future
from rebalance_lab.wire.cluster import (
    LeaderIsrAndControllerEpoch,
    isr_change_payload,
    read_state,
    state_payload,
)
from rebalance_lab.wire.paths import BROKER_IDS, ISR_CHANGES, broker_path, partition_state_path
from rebalance_lab.world.ports import ZooKeeper

OPERATIONS = frozenset({"create", "get", "children", "exists", "set", "delete", "multi", "multi_read"})

#: Partitions of each topic.
PARTITIONS = 7


class CountingSession:
    """The port `ZooKeeper` around another session. `requests`: the operation and the path of those asked since `reset`.
    `round_trips`: the longest row of requests of which each was asked after the answer to the one before."""

    def __init__(self, inner: ZooKeeper) -> None:
        self._inner = inner
        self._held: tuple[str, int] | None = None
        self._released: Future[None] = Future("the end of a hold")
        self.reset()

    def reset(self) -> None:
        self.requests: list[str] = []
        self.round_trips = self._answered = 0

    def hold(self, request: str, number: int = 1) -> None:
        """Hold back the request of this name that is asked as the n-th from now on, until `release`."""
        self._held = (request, number)

    def release(self) -> None:
        self._released.set(None)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return partial(self._asked, name, found) if name in OPERATIONS else found

    def _asked(self, name: str, ask: Any, *args: Any, **kwargs: Any) -> Future[Any]:
        self.requests.append(f"{name} {args[0]}")
        place = self._answered + 1
        self.round_trips = max(self.round_trips, place)
        if self._held is not None and self._held[0] == self.requests[-1]:
            self._held = (self._held[0], self._held[1] - 1)
            if self._held[1] == 0:
                return self._later(partial(ask, *args, **kwargs))
        answer: Future[Any] = ask(*args, **kwargs)
        answer.on(lambda _answered: self._place(place))
        return answer

    def _later(self, ask: Any) -> Future[Any]:
        later: Future[Any] = Future("the answer to a request that is held")
        self._released.on(lambda _released: ask().on(lambda answer: later.set(answer.result())))
        return later

    def _place(self, place: int) -> None:
        self._answered = max(self._answered, place)


def _counted(candidate: Candidate) -> CountingSession:
    """Before it has begun."""
    session = CountingSession(candidate.session)
    candidate.session = cast(ZooKeeper, session)
    return session


async def _idle(stage: Stage, session: CountingSession) -> None:
    before = -1
    while before != len(session.requests):
        before = len(session.requests)
        await stage.settle()


#: Asked once: `/controller` twice, four lists, what is to be reassigned, and which leaders are preferred.
ONCE = 8


def cost(form: ControllerForm, brokers: int, topics: int, partitions: int) -> tuple[int, int]:
    """How many requests a takeover of a cluster of this size costs, and how many round trips. The election takes a read
    and a transaction, or two writes with a read in between. From 1.1 on it lists reports of failed disks, and in 2.1 it
    reads the features."""
    once = ONCE + (2 if form.in_one_transaction else 3) + form.hears_of_failed_disks + form.has_features
    read = [brokers, topics, 1 if form.reads_together else partitions]
    return once + sum(read), once + sum(math.ceil(each / form.in_flight) for each in read)


@pytest.mark.parametrize("form", ControllerForm)
@pytest.mark.parametrize(("brokers", "topics"), [(3, 4), (12, 15)])
def test_what_a_takeover_asks_of_zookeeper(form: ControllerForm, brokers: int, topics: int) -> None:
    async def story(stage: Stage) -> None:
        for broker in range(1, brokers + 1):
            await stage.register(broker)
        first = stage.candidate(1)
        await stage.settle()
        for topic in range(topics):
            await stage.write_topic(f"t{topic}", dict.fromkeys(range(PARTITIONS), (1, 2)))
        await stage.settle()
        second = stage.candidate(2, form)
        session = _counted(second)
        await _idle(stage, session)
        session.reset()
        stage.server.expire(first.session.session_id)
        await _idle(stage, session)
        assert second.epochs == [2]
        assert len(second.known) == PARTITIONS * topics
        found = len(session.requests), session.round_trips
        assert found == cost(form, brokers, topics, PARTITIONS * topics)

    Stage().play(story)


@pytest.mark.parametrize("reports", [3, 10])
@pytest.mark.parametrize("lists_early", [False, True])
def test_lists_that_wait_have_reports_of_isrs_read_again_and_again(reports: int, lists_early: bool) -> None:
    """KAFKA-5879: while the controller reads the first report the others come, one after another. Each report is in the
    lists of itself and of those that come after it, and in those that are made when one before it is deleted."""
    names = [f"{ISR_CHANGES}/isr_change_{each:010}" for each in range(reports)]

    async def story(stage: Stage) -> None:
        await stage.other.ensure_path(ISR_CHANGES)
        session = _counted(stage.candidate(1, lists_early=lists_early))
        await _idle(stage, session)
        session.hold(f"get {names[0]}")
        for name in names:
            await stage.create(name, isr_change_payload([]))
            await stage.settle()
        session.release()
        await _idle(stage, session)
        read = sum(each.startswith(f"get {ISR_CHANGES}/") for each in session.requests)
        assert read == (reports**2 if lists_early else reports)
        assert not any([await stage.there(each) for each in names])

    Stage().play(story)


@pytest.mark.parametrize("lists_early", [False, True])
def test_a_list_that_waits_has_a_live_broker_taken_for_dead(lists_early: bool) -> None:
    """Broker 3 is gone for a moment while the first controller of a cluster, of 0.8.2, is about to read the brokers."""
    state = partition_state_path("t", 0)
    request = f"children {BROKER_IDS}"

    async def story(stage: Stage) -> None:
        for broker in (1, 2, 3):
            await stage.register(broker)
        await stage.write_topic("t", {0: (3, 1)})
        for path in (f"{state[: -len('/0/state')]}", state[: -len("/state")]):
            await stage.create(path, b"")
        led = LeaderIsrAndControllerEpoch(controller_epoch=1, leader=3, leader_epoch=7, isr=(3, 1))
        await stage.create(state, state_payload(led))
        session = _counted(stage.candidate(1, ControllerForm.V0_8_2, lists_early=lists_early))
        session.hold(request, 2 if lists_early else 1)
        await _idle(stage, session)
        await stage.remove(broker_path(3))
        await stage.settle()
        await stage.register(3)
        await stage.settle()
        assert session.requests.count(request) == (4 if lists_early else 1)
        session.release()
        await _idle(stage, session)
        found = read_state("t", 0, await stage.data(state))
        assert (found.leader, found.leader_epoch) == ((1, 8) if lists_early else (3, 7))

    Stage().play(story)
