"""A controller's machine in a state, and its instructions in short."""

from __future__ import annotations

from collections.abc import Iterable

from controller.cluster import LiveBroker, Stored, Topic
from controller.forms import ControllerForm
from controller.leader_election import LeaderAndIsr, Selection
from controller.machine import ControllerMachine
from controller.request_batch import Send
from controller.settings import ControllerSettings
from controller.stimuli import (
    AnswerIsr,
    AssignmentsWritten,
    HandBack,
    Instruction,
    IsrAsked,
    IsrWanted,
    Loaded,
    ReadStates,
    StatesRead,
    StatesWritten,
    Stimulus,
    WriteAssignments,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
EPOCH = 7


def broker(number: int, epoch: int = 0) -> LiveBroker:
    return LiveBroker(number, epoch or 100 + number, f"h{number}", 9092)


def stored(leader: int, *isr: int, leader_epoch: int = 0, controller_epoch: int = EPOCH, version: int = 0) -> Stored:
    return Stored(LeaderAndIsr(leader, leader_epoch, isr), controller_epoch, version)


def machine(**settings: bool | ControllerForm | Selection) -> ControllerMachine:
    """`settings`: those of ControllerSettings that are not the default."""
    return ControllerMachine(1, EPOCH, ControllerSettings(**settings))  # type: ignore[arg-type]


def running(
    topics: dict[str, Topic],
    states: dict[TopicPartition, Stored],
    brokers: Iterable[int] = (1, 2),
    **options: bool | ControllerForm | Selection,
) -> ControllerMachine:
    """A controller that has loaded this, and whose brokers are all live."""
    it = machine(**options)
    it.handle(Loaded([broker(each) for each in brokers], topics, states))
    return it


def carried_out(it: ControllerMachine, stimulus: Stimulus) -> list[Instruction]:
    """All instructions that follow from a stimulus, if every write succeeds."""
    waiting, found = [stimulus], []
    while waiting:
        instructions = it.handle(waiting.pop(0))
        found += instructions
        for each in instructions:
            if isinstance(each, HandBack):
                waiting.append(each.stimulus)
            elif isinstance(each, WriteStates):
                written = {
                    partition: Stored(state, EPOCH, 0 if version is None else version + 1)
                    for partition, (state, version) in each.states.items()
                }
                waiting.append(StatesWritten(written, of=each.of))
            elif isinstance(each, WriteAssignments):
                waiting.append(AssignmentsWritten(each.topic, each.changed))
            elif isinstance(each, ReadStates):
                there = {partition: it.cluster.stored[partition] for partition in each.partitions}
                waiting.append(StatesRead(each.partitions, there))
    return found


def writes(instructions: list[Instruction]) -> list[dict[TopicPartition, LeaderAndIsr]]:
    """What is written, one write after another."""
    return [
        {partition: state for partition, (state, _) in each.states.items()}
        for each in instructions
        if isinstance(each, WriteStates)
    ]


def brief(instructions: list[Instruction]) -> list[object]:
    """Requests in short: (broker, kind, [(partition, leader, leader epoch)]); other instructions as they are."""
    return [_brief(each) for each in instructions]


def _brief(instruction: Instruction) -> object:
    if not isinstance(instruction, Send):
        return instruction
    request = instruction.request
    match request:
        case LeaderAndIsrRequest():
            kind = "lead"
            said = [
                (s.partition_index, s.leader, s.leader_epoch) for t in request.topic_states for s in t.partition_states
            ]
        case UpdateMetadataRequest():
            kind = "inform"
            said = [
                (s.partition_index, s.leader, s.leader_epoch) for t in request.topic_states for s in t.partition_states
            ]
        case StopReplicaRequest():
            kind = "delete"
            said = [
                (s.partition_index, s.leader_epoch, s.delete_partition)
                for t in request.topic_states
                for s in t.partition_states
            ]
    return (instruction.broker_id, kind, said)


def asked(it: ControllerMachine, *isr: int, leader_epoch: int = 5, version: int = 3, broker_epoch: int = 101) -> object:
    """What broker 1 is answered, which wants this ISR."""
    answers: list[object] = []
    wanted = {T0: IsrWanted(leader_epoch, isr, version)}
    found = carried_out(it, IsrAsked(1, broker_epoch, wanted, lambda error, results: answers.append((error, results))))
    (answer,) = [each for each in found if isinstance(each, AnswerIsr)]
    return answer.results[T0] if answer.results else answer.error


def with_leader_1(**options: bool) -> ControllerMachine:
    states = {T0: stored(1, 1, 2, leader_epoch=5, version=3)}
    return running({"t": Topic({0: (1, 2, 3)})}, states, (1, 2, 3), **options)
