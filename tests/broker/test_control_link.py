"""What a controller sends can be written in the versions in which it is sent."""

from __future__ import annotations

import asyncio

import pytest

from controller.channels import Undelivered
from controller.cluster import LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.request_batch import Send
from controller.settings import ControllerSettings
from controller.stimuli import (
    DeletionsRead,
    Loaded,
    StatesWritten,
    UncleanRead,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.control_link import SHARED, ControlLinks, SharedBodies
from rebalance_lab.broker.versions import ProtocolVersion
from rebalance_lab.wire.kafka.codec import Codec, codec
from rebalance_lab.wire.kafka.frames import encode_request, key_of
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import Address, ConnectionLost


def test_also_an_unclean_election() -> None:
    partition = TopicPartition("t", 0)
    machine = ControllerMachine(1, 1, ControllerSettings())
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
    assert {type(each) for each in sent} == {LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest}
    for protocol in ProtocolVersion:
        for each in (message for request in sent for message in protocol.messages(request)):
            assert encode_request(each, protocol.version_of(key_of(type(each))), correlation_id=1, client_id="c")


class Silent:
    """A network of a broker that answers nothing, and its connection. `limits_us`: how long it was waited for."""

    def __init__(self) -> None:
        self.limits_us: list[int] = []

    async def connect(self, *_address_and_codec: object, timeout_us: int) -> Silent:
        self.limits_us.append(timeout_us)
        return self

    async def request(self, _asked: object, *, timeout_us: int) -> Message:
        self.limits_us.append(timeout_us)
        raise ConnectionLost(Address("h", 1), "no answer in time")

    def close(self) -> None: ...


def test_a_broker_is_waited_for_as_long_as_the_setting_says() -> None:
    silent = Silent()
    links = ControlLinks(silent, "c", SHARED, timeout_ms=1500)  # type: ignore[arg-type]
    with pytest.raises(Undelivered, match="no answer in time"):
        asyncio.run(links.deliver(LiveBroker(2, 1, "h", 1), ControlledShutdownRequest(broker_id=1, broker_epoch=1)))
    assert silent.limits_us == [1_500_000, 1_500_000]


def sent_to(brokers: list[int], assignment: tuple[int, ...]) -> list[Send]:
    """The requests to take up three partitions with `assignment`, and the metadata."""
    machine = ControllerMachine(1, 7, ControllerSettings())
    partitions = [TopicPartition("t", each) for each in range(3)]
    topics = {"t": Topic(dict.fromkeys(range(3), assignment))}
    stored = {each: Stored(LeaderAndIsr(assignment[0], 4, assignment), 6, 5) for each in partitions}
    live = [LiveBroker(each, 2**40 + each, f"h{each}", each) for each in brokers]
    return [each for each in machine.handle(Loaded(live, topics, stored)) if isinstance(each, Send)]


@pytest.mark.parametrize("assignment", [(1, 2, 3), (1, 2), (3,)])
def test_bytes_that_brokers_share_are_those_of_each_request(assignment: tuple[int, ...]) -> None:
    bodies = SharedBodies()
    requests = [each.request for each in sent_to([1, 2, 3], assignment)]
    for each in requests:
        assert isinstance(each, LeaderAndIsrRequest | UpdateMetadataRequest)
        assert bodies.encoded(each) == codec(type(each), SHARED.version_of(key_of(type(each)))).encode(each)
    assert len({each.broker_epoch for each in requests}) == 3


def test_requests_that_differ_in_the_epoch_of_the_broker_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[type[Message]] = []
    plain = Codec.encode

    def counted(self: Codec[Message], message: Message, head: bytes = b"") -> bytes:
        encoded.append(type(message))
        return plain(self, message, head)

    monkeypatch.setattr(Codec, "encode", counted)
    bodies = SharedBodies()
    for each in sent_to([1, 2, 3], (1, 2, 3)):
        assert isinstance(each.request, LeaderAndIsrRequest | UpdateMetadataRequest)
        bodies.encoded(each.request)
    # The first metadata has no partitions, the second one those of all leaderships.
    assert encoded == [UpdateMetadataRequest, LeaderAndIsrRequest, UpdateMetadataRequest]
