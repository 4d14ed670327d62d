"""A controller's way to its brokers: order, retries, and brokers that go and come back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from controller.channels import BrokerChannels, Undelivered
from controller.cluster import LiveBroker
from controller.request_batch import ControlRequest, Send
from controller.stimuli import (
    LeadershipAnswered,
    ReplicasDeleted,
    Stimulus,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.kernel import Future, Scope
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from rebalance_lab.wire.kafka.schema import Message

ONE = LiveBroker(1, 100, "h1", 9092)


def request(number: int, *, delete: bool = False) -> StopReplicaRequest:
    state = StopReplicaPartitionState(partition_index=number, delete_partition=delete)
    topic = StopReplicaTopicState(topic_name="t", partition_states=(state,))
    return StopReplicaRequest(controller_id=1, controller_epoch=1, topic_states=(topic,))


def number_of(request: ControlRequest) -> int:
    assert isinstance(request, StopReplicaRequest)
    return request.topic_states[0].partition_states[0].partition_index


class Brokers:
    """Answers what it is sent; `lost`: how many deliveries fail first; `error`: of each partition."""

    def __init__(self) -> None:
        self.got: list[tuple[int, int]] = []
        self.lost = 0
        self.error = ErrorCode.NONE
        self.answering: Future[None] | None = None
        self.told: list[Stimulus] = []

    async def deliver(self, broker: LiveBroker, sent: ControlRequest) -> Message:
        if self.lost:
            self.lost -= 1
            raise Undelivered("no connection")
        self.got.append((broker.epoch, number_of(sent)))
        if self.answering is not None:
            await self.answering
        return StopReplicaResponse(
            error_code=ErrorCode.NONE,
            partition_errors=(
                StopReplicaPartitionError(topic_name="t", partition_index=number_of(sent), error_code=self.error),
            ),
        )


def play(story: Callable[[Simulation, BrokerChannels, Brokers], Awaitable[None]]) -> Brokers:
    simulation, brokers = Simulation(1), Brokers()

    async def main() -> None:
        scope: Scope
        async with simulation.kernel.scope("reign") as scope:
            await story(simulation, BrokerChannels(simulation.kernel, scope, brokers.deliver), brokers)
            scope.cancel("the story has ended")

    try:
        simulation.run(main())
    finally:
        simulation.close()
    return brokers


def test_requests_are_delivered_in_order_again_until_they_are_answered() -> None:
    async def story(simulation: Simulation, channels: BrokerChannels, brokers: Brokers) -> None:
        brokers.lost = 3
        channels.live({1: ONE})
        for each in range(3):
            channels.send(Send.of(1, request(each)), brokers.told.append)
        await simulation.kernel.sleep(1_000_000)

    assert play(story).got == [(100, 0), (100, 1), (100, 2)]


def test_one_request_is_under_way_at_a_time() -> None:
    async def story(simulation: Simulation, channels: BrokerChannels, brokers: Brokers) -> None:
        brokers.answering = Future("an answer")
        channels.live({1: ONE})
        for each in range(2):
            channels.send(Send.of(1, request(each)), brokers.told.append)
        await simulation.kernel.sleep(1_000_000)
        assert brokers.got == [(100, 0)]
        brokers.answering.set(None)
        await simulation.kernel.sleep(1_000)

    assert play(story).got == [(100, 0), (100, 1)]


def test_a_request_is_made_when_its_turn_comes() -> None:
    made: list[int] = []

    def make(number: int) -> StopReplicaRequest:
        made.append(number)
        return request(number)

    async def story(simulation: Simulation, channels: BrokerChannels, brokers: Brokers) -> None:
        brokers.answering = Future("an answer")
        channels.live({1: ONE})
        for each in range(3):
            channels.send(Send(1, partial(make, each)), brokers.told.append)
        await simulation.kernel.sleep(1_000_000)
        assert made == [0]
        brokers.answering.set(None)
        brokers.answering = Future("another answer")
        await simulation.kernel.sleep(1_000)
        assert made == [0, 1]
        channels.live({})
        await simulation.kernel.sleep(1_000)

    play(story)
    assert made == [0, 1]


def test_what_waits_for_a_broker_that_is_gone_is_dropped() -> None:
    async def story(simulation: Simulation, channels: BrokerChannels, brokers: Brokers) -> None:
        brokers.lost = 1000
        channels.live({1: ONE})
        channels.send(Send.of(1, request(0)), brokers.told.append)
        await simulation.kernel.sleep(1_000_000)
        channels.live({})
        channels.send(Send.of(1, request(1)), brokers.told.append)
        brokers.lost = 0
        channels.live({1: LiveBroker(1, 200, "h1", 9092)})
        channels.send(Send.of(1, request(2)), brokers.told.append)
        await simulation.kernel.sleep(1_000_000)

    assert play(story).got == [(200, 2)]


def test_it_is_reported_which_roles_a_broker_takes_and_which_it_refuses_but_not_those_it_has() -> None:
    answers = [
        LeaderAndIsrPartitionError(topic_name="t", partition_index=each, error_code=code)
        for each, code in enumerate((ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR))
    ]
    told: list[Stimulus] = []
    simulation = Simulation(1)

    async def deliver(_broker: LiveBroker, _sent: ControlRequest) -> Message:
        return LeaderAndIsrResponse(error_code=ErrorCode.NONE, partition_errors=tuple(answers))

    async def main() -> None:
        async with simulation.kernel.scope("reign") as scope:
            channels = BrokerChannels(simulation.kernel, scope, deliver)
            channels.live({1: ONE})
            channels.send(
                Send.of(1, LeaderAndIsrRequest(controller_id=1, controller_epoch=1, live_leaders=())), told.append
            )
            await simulation.kernel.sleep(1_000)
            scope.cancel("the story has ended")

    try:
        simulation.run(main())
    finally:
        simulation.close()
    assert told == [
        LeadershipAnswered(1, (TopicPartition("t", 0),), {TopicPartition("t", 2): ErrorCode.KAFKA_STORAGE_ERROR})
    ]


def test_deletions_are_reported_with_what_failed() -> None:
    async def story(simulation: Simulation, channels: BrokerChannels, brokers: Brokers) -> None:
        channels.live({1: ONE})
        channels.send(Send.of(1, request(0, delete=True)), brokers.told.append)
        await simulation.kernel.sleep(1_000)
        brokers.error = ErrorCode.KAFKA_STORAGE_ERROR
        channels.send(Send.of(1, request(1, delete=True)), brokers.told.append)
        channels.send(Send.of(1, request(2, delete=False)), brokers.told.append)
        await simulation.kernel.sleep(1_000)

    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    assert play(story).told == [ReplicasDeleted(1, (first,)), ReplicasDeleted(1, (second,), (second,))]
