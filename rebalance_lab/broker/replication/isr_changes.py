"""How leaders have a change of their ISR written.

From Kafka 2.7 on a leader asks the controller, which writes it (AlterIsr, later AlterPartition, KIP-497). How leaders
wrote it themselves before is in `isr_writes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from controller.channels import Undelivered
from controller.cluster import LiveBroker
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.control_link import ControlLinks
from rebalance_lab.broker.replication.leadership import Leadership
from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
)

#: How long a change that the controller did not take waits before it is sent again.
RETRY_MS = 50


@dataclass(frozen=True, slots=True)
class IsrWritten:
    """The state has this ISR now."""

    isr: tuple[int, ...]
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class IsrNotWritten:
    """It was not written. `may_be_written`: nobody knows; the leader goes on assuming that it may be, until the
    controller gives the partition a new leader epoch."""

    why: str
    may_be_written: bool


IsrOutcome = IsrWritten | IsrNotWritten


class ChangingPartition(Protocol):
    """`isr_answered` takes what came of a change that a leadership has asked for."""

    @property
    def partition(self) -> TopicPartition: ...
    async def isr_answered(self, leadership: Leadership, outcome: IsrOutcome) -> None: ...


@dataclass(frozen=True, slots=True)
class Change:
    """`leadership.proposed` is asked for. `controller_epoch`: that of the controller which chose the leader."""

    replica: ChangingPartition
    leadership: Leadership
    isr: tuple[int, ...]
    controller_epoch: int

    @property
    def is_wanted(self) -> bool:
        """Whether the leadership still waits for it."""
        return self.leadership.proposed == self.isr


class AskController:
    """`controller()`: where the controller listens; None while it is not known. `broker_epoch()`: this broker's."""

    def __init__(
        self,
        tasks: Kernel,
        links: ControlLinks,
        broker_id: int,
        *,
        controller: Callable[[], LiveBroker | None],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._tasks = tasks
        self._links = links
        self._broker_id = broker_id
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[TopicPartition, Change] = {}
        self._has_some = Flag("changes of the ISR to ask for")

    def submit(self, change: Change) -> None:
        self._waiting[change.replica.partition] = change
        self._has_some.raise_()

    async def run(self) -> None:
        while True:
            await self._has_some.wait()
            self._waiting = {each: change for each, change in self._waiting.items() if change.is_wanted}
            sent = dict(self._waiting)
            if not sent:
                self._has_some.clear()
                continue
            response = await self._answer(sent)
            if response is None or response.error_code:
                await self._tasks.sleep(RETRY_MS * 1000)
            else:
                await self._take(sent, response)

    async def _answer(self, sent: Mapping[TopicPartition, Change]) -> AlterPartitionResponse | None:
        """None: the controller is not known, or does not answer."""
        controller = self._controller()
        if controller is None:
            return None
        request = AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=tuple(
                AlterPartitionRequestTopicData(
                    topic_name=topic,
                    partitions=(
                        AlterPartitionRequestPartitionData(
                            partition_index=partition,
                            leader_epoch=change.leadership.leader_epoch,
                            new_isr=change.isr,
                            partition_epoch=change.leadership.partition_epoch,
                        ),
                    ),
                )
                for (topic, partition), change in sent.items()
            ),
        )
        try:
            response = await self._links.deliver(controller, request)
        except Undelivered:
            return None
        assert isinstance(response, AlterPartitionResponse)
        return response

    async def _take(self, sent: Mapping[TopicPartition, Change], response: AlterPartitionResponse) -> None:
        again = False
        for topic in response.topics:
            for each in topic.partitions:
                change = sent.get(TopicPartition(topic.topic_name, each.partition_index))
                if change is None:
                    continue
                outcome: IsrOutcome | None = IsrWritten(each.isr, each.partition_epoch)
                if each.error_code:
                    outcome = _refusal(ErrorCode(each.error_code))
                if outcome is None:
                    again = True
                    continue
                if self._waiting.get(change.replica.partition) is change:
                    del self._waiting[change.replica.partition]
                await change.replica.isr_answered(change.leadership, outcome)
        if again:
            await self._tasks.sleep(RETRY_MS * 1000)


#: The controller has not written it, and may later: the leader is free to ask for something else.
_NOT_WRITTEN = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})

#: What the leader knows is old. It waits for what the controller sends.
_OUTDATED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


def _refusal(code: ErrorCode) -> IsrNotWritten | None:
    """None: ask again (`Partition.handleAlterPartitionError`)."""
    if code in _NOT_WRITTEN:
        return IsrNotWritten(code.name, may_be_written=False)
    if code in _OUTDATED:
        return IsrNotWritten(code.name, may_be_written=True)
    return None
