"""A controller's queues to its brokers: one request under way to each, in order, sent again until it is answered or the
broker is gone (`kafka.controller.ControllerChannelManager`, `RequestSendThread`, Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from controller.cluster import LiveBroker
from controller.request_batch import ControlRequest, Send
from controller.stimuli import (
    LeadershipAnswered,
    ReplicasDeleted,
    Stimulus,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.kernel import Kernel, Mailbox, Scope, Task
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrResponse
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from rebalance_lab.wire.kafka.schema import Message

#: Pause before a request is sent again, as Kafka's.
RETRY_MS = 100

#: No error, and a leadership that the broker knows already.
_NO_REFUSAL = frozenset({ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH})

#: Requests that wait for one broker. Kafka's queue has no limit.
QUEUE_LIMIT = 100_000


class Undelivered(Exception):
    """Nobody knows whether the broker got the request: there is no connection, or it broke before the answer."""


Deliver = Callable[[LiveBroker, ControlRequest], Awaitable[Message]]
Answered = Callable[[Stimulus], None]


@dataclass(slots=True)
class _Channel:
    broker: LiveBroker
    queue: Mailbox[tuple[Send, Answered]]
    task: Task[None]


class BrokerChannels:
    """The channels of one reign. `deliver`: sends a request and returns the answer; raises Undelivered."""

    def __init__(self, tasks: Kernel, scope: Scope, deliver: Deliver) -> None:
        self._tasks = tasks
        self._scope = scope
        self._deliver = deliver
        self._channels: dict[int, _Channel] = {}

    def live(self, brokers: Mapping[int, LiveBroker]) -> None:
        """Open channels to brokers that are new, or came back; close those to brokers that are gone."""
        for broker_id, channel in list(self._channels.items()):
            if brokers.get(broker_id) != channel.broker:
                channel.task.cancel(f"broker {broker_id} is gone")
                del self._channels[broker_id]
        for broker_id, broker in brokers.items():
            if broker_id not in self._channels:
                queue: Mailbox[tuple[Send, Answered]] = Mailbox(f"requests to broker {broker_id}", QUEUE_LIMIT)
                task = self._scope.spawn(self._run(broker, queue), f"channel to broker {broker_id}")
                self._channels[broker_id] = _Channel(broker, queue, task)

    def send(self, what: Send, answered: Answered) -> None:
        """Nothing is sent to a broker that is gone."""
        channel = self._channels.get(what.broker_id)
        if channel is not None:
            channel.queue.put((what, answered))

    async def _run(self, broker: LiveBroker, queue: Mailbox[tuple[Send, Answered]]) -> None:
        while True:
            what, answered = await queue.get()
            request = what.request
            response = await self._answer(broker, request)
            stimulus = _outcome(broker.broker_id, request, response)
            if stimulus is not None:
                answered(stimulus)

    async def _answer(self, broker: LiveBroker, request: ControlRequest) -> Message:
        while True:  # ends with the channel, as in the original
            try:
                return await self._deliver(broker, request)
            except Undelivered:
                await self._tasks.sleep(RETRY_MS * 1000)


def _outcome(broker_id: int, request: ControlRequest, response: Message) -> Stimulus | None:
    """What the controller must hear of an answer."""
    if isinstance(request, StopReplicaRequest) and isinstance(response, StopReplicaResponse):
        return _deleted(broker_id, request, response)
    if isinstance(response, LeaderAndIsrResponse):
        return _answered(broker_id, response)
    return None


def _answered(broker_id: int, response: LeaderAndIsrResponse) -> LeadershipAnswered | None:
    """What the broker makes of each partition; None if it refuses the whole request."""
    if response.error_code:
        return None
    answers = {
        TopicPartition(each.topic_name, each.partition_index): each.error_code for each in response.partition_errors
    }
    taken = tuple(each for each, error in answers.items() if error == ErrorCode.NONE)
    errors = {each: ErrorCode(error) for each, error in answers.items() if error not in _NO_REFUSAL}
    return LeadershipAnswered(broker_id, taken, errors) if taken or errors else None


def _deleted(broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse) -> ReplicasDeleted | None:
    """What came of the replicas that were to be deleted; None if there were none."""
    wanted = tuple(
        TopicPartition(topic.topic_name, each.partition_index)
        for topic in request.topic_states
        for each in topic.partition_states
        if each.delete_partition
    )
    errors = {
        TopicPartition(each.topic_name, each.partition_index): each.error_code for each in response.partition_errors
    }
    failed = tuple(each for each in wanted if response.error_code or errors.get(each, ErrorCode.NONE))
    return ReplicasDeleted(broker_id, wanted, failed) if wanted else None
