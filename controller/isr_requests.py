"""The ISRs that leaders ask the controller for (`KafkaController.tryProcessAlterPartition`, Kafka 3.9.1; KIP-497).

A write whose reply is lost with the connection is sent again, and refused, because the first one has been done. Kafka
3.9.1 then answers INVALID_UPDATE_VERSION, and the leader waits for a state that it has already: its ISR stays as it is
until there is a new leader epoch. With `read_back` the leader is answered what it asked for, if that is what ZooKeeper
has. Found by `make soak`.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from controller.cluster import Cluster, Stored
from controller.leader_election import LeaderAndIsr
from controller.stimuli import AnswerIsr, Instruction, IsrAsked, IsrWanted, Purpose, StatesWritten, WriteStates
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode

Results = dict[TopicPartition, Stored | ErrorCode]


class IsrRequests:
    """Requests whose states are being written: they are answered in the order in which they came."""

    def __init__(self, cluster: Cluster, *, read_back: bool = False) -> None:
        self._cluster = cluster
        self._read_back = read_back
        self._waiting: list[tuple[IsrAsked, Results]] = []

    def begin(self, asked: IsrAsked) -> list[Instruction]:
        """Have those written that are in order."""
        broker = self._cluster.brokers.get(asked.broker_id)
        if broker is None or broker.epoch != asked.broker_epoch:
            return [AnswerIsr(asked, ErrorCode.STALE_BROKER_EPOCH)]
        results: Results = {}
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        for partition, wanted in asked.wanted.items():
            result = self._result(partition, wanted, asked.broker_id)
            if result is not None:
                results[partition] = result
            else:
                stored = self._cluster.stored[partition]
                states[partition] = replace(stored.leader_and_isr, isr=wanted.isr, recovering=False), stored.version
        if not states:
            return [AnswerIsr(asked, ErrorCode.NONE, results)]
        self._waiting.append((asked, results))
        return [WriteStates(states, Purpose.ISR)]

    def _result(self, partition: TopicPartition, wanted: IsrWanted, leader: int) -> Stored | ErrorCode | None:
        """What the leader is answered without a write; None if its ISR is to be written."""
        stored = self._cluster.stored.get(partition)
        if stored is None or self._cluster.is_dying(partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if _is_so(wanted, stored, leader) and wanted.partition_epoch <= stored.version:
            return stored
        return refusal(wanted, stored, self._cluster.live)

    def written(self, result: StatesWritten) -> list[Instruction]:
        """Answer the request whose states were written."""
        asked, results = self._waiting.pop(0)
        for partition, stored in result.written.items():
            if partition in self._cluster.stored:
                self._cluster.store(partition, stored)
            results[partition] = stored
        for partition, found in result.conflicts.items():
            if found is not None and partition in self._cluster.stored:
                self._cluster.store(partition, found)
            results[partition] = ErrorCode.INVALID_UPDATE_VERSION
            if self._read_back and found is not None and _is_so(asked.wanted[partition], found, asked.broker_id):
                results[partition] = found
        return [AnswerIsr(asked, ErrorCode.NONE, results)]


def _is_so(wanted: IsrWanted, stored: Stored, leader: int) -> bool:
    """Whether the state is what its leader asks for."""
    current = stored.leader_and_isr
    return (leader, wanted.leader_epoch, wanted.isr) == (current.leader, current.leader_epoch, current.isr)


def refusal(wanted: IsrWanted, stored: Stored, live: Collection[int]) -> ErrorCode | None:
    """Why an ISR that a leader asks for is not written; None if it is."""
    leader_epoch = stored.leader_and_isr.leader_epoch
    if wanted.partition_epoch > stored.version or wanted.leader_epoch > leader_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader has heard of a later controller
    if wanted.leader_epoch < leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if wanted.partition_epoch < stored.version:
        return ErrorCode.INVALID_UPDATE_VERSION
    if not set(wanted.isr) <= set(live):
        return ErrorCode.OPERATION_NOT_ATTEMPTED  # versions 0 and 1 have no better word
    return None
