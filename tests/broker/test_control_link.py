"""What a controller sends can be written in the versions in which it is sent."""

from __future__ import annotations

from controller.cluster import LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.request_batch import Send
from controller.stimuli import (
    DeletionsRead,
    Loaded,
    StatesWritten,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.control_link import VERSIONS
from rebalance_lab.wire.kafka.frames import encode_request
from rebalance_lab.wire.kafka.messages.alter_partition import AlterPartitionRequest
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest


def test_also_an_unclean_election() -> None:
    partition = TopicPartition("t", 0)
    machine = ControllerMachine(1, 1)
    before = Stored(LeaderAndIsr(3, 4, (3,)), 1, 0)
    found = machine.handle(Loaded([LiveBroker(2, 1, "h", 1)], {"t": Topic({0: (3, 2)})}, {partition: before}))
    found += machine.handle(UncleanRead([partition], {"t"}))
    written = found[-1]
    assert isinstance(written, WriteStates)
    elected = written.states[partition][0]
    assert elected.recovering
    found += machine.handle(StatesWritten({partition: Stored(elected, 1, 1)}))
    found += machine.handle(DeletionsRead(["t"]))
    sent = [each.request for each in found if isinstance(each, Send)]
    assert {type(each) for each in sent} == set(VERSIONS) - {AlterPartitionRequest, ControlledShutdownRequest}
    for each in sent:
        assert encode_request(each, VERSIONS[type(each)], correlation_id=1, client_id="c")
