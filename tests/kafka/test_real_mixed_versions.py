"""Brokers of Kafka 1.1.1 and of 3.9.1 in one cluster. `inter.broker.protocol.version` of the new ones decides whether
the old one can read what they send."""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from console_tools import LIMIT_S, fetched, until
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from rebalance_lab.broker.versions import Release
from rebalance_lab.wire.cluster import assignment_payload, read_controller, read_registration, read_state
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.frames import decode_response, encode_request, key_of
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest, MetadataResponse
from rebalance_lab.wire.kafka.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from rebalance_lab.wire.kafka.records import Record, build_batch
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.wire.paths import CONTROLLER, DELETE_TOPICS, broker_path, partition_state_path, topic_path
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.jars import Role
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

TOPIC = "t1"

#: The broker of 1.1.1, and those of 3.9.1.
OLD, NEW = 1, (2, 3)

EVERY = {OLD, *NEW}

#: The first replica is to lead: the old broker partition 0, a new one partition 1.
REPLICAS = {0: (1, 2, 3), 1: (2, 3, 1)}

#: What the new brokers speak: what the old one can read, and what it cannot.
COMMON, LATER = "1.1", "2.7"

#: How long followers may lag. Long, where none is to leave its ISR; short, where some are.
LAG_MS = {COMMON: "30000", LATER: "3000"}

#: Partition -> (leader, ISR).
Roles = dict[int, tuple[int, set[int]]]

#: What the old broker logs for a request that it has answered, and for one that it cannot read.
ANSWERED = re.compile(r"Completed request:RequestHeader\(apiKey=(\w+), apiVersion=(\d+),")
REFUSED = re.compile(
    r"Exception while processing request from .*\n.*\.InvalidRequestException: Error getting request for"
    r" apiKey: (\w+), apiVersion: (\d+),.*\nCaused by: java\.lang\.IllegalArgumentException: Invalid version"
)

#: What a new controller logs, and a new follower, when the old broker has closed the connection; and a new leader, when
#: the old controller does not know the request.
UNSENT = "fails to send request (type: UpdateMetadataRequest="
UNFETCHED = "leaderId=1, fetcherId=0] Error in response for fetch request"
UNREPORTED = "UnsupportedVersionException: The node does not support ALTER_PARTITION"

#: What has happened so often once more is taken to go on.
OFTEN = 2


def requests(broker: KafkaBroker, pattern: re.Pattern[str]) -> Counter[tuple[str, int]]:
    """How many requests of an API in a version it has answered, or refused."""
    return Counter((api, int(version)) for api, version in pattern.findall(broker.logged()))


def roles(client: KazooClient) -> Roles:
    """What ZooKeeper says of the topic."""
    found = {}
    for each in REPLICAS:
        try:
            state = read_state(TOPIC, each, client.get(partition_state_path(TOPIC, each))[0])
        except NoNodeError:
            continue
        found[each] = (state.leader, set(state.isr))
    return found


def ask(client: KazooClient, broker: int, request: Message, version: int) -> Message:
    """Ask one broker, over a connection of its own."""
    found = read_registration(broker, client.get(broker_path(broker))[0])
    frame = encode_request(request, version, correlation_id=1, client_id="lab")
    with socket.create_connection((found.host, found.port), LIMIT_S) as link, link.makefile("rb") as answers:
        link.sendall(len(frame).to_bytes(4, "big") + frame)
        answer = answers.read(int.from_bytes(answers.read(4), "big"))
    return decode_response(answer, key_of(type(request)), version)[1]


def view(client: KazooClient, broker: int) -> Roles:
    """What a broker tells clients of the topic."""
    said = ask(client, broker, MetadataRequest(topics=None), 1)
    assert isinstance(said, MetadataResponse)
    partitions = [each for topic in said.topics if topic.name == TOPIC for each in topic.partitions]
    return {each.partition_index: (each.leader_id, set(each.isr_nodes)) for each in partitions}


def produce(client: KazooClient, broker: int, partition: int, timeout_ms: int = LIMIT_S * 1000) -> ErrorCode:
    """Produce a record, to be acknowledged by the whole ISR."""
    records = build_batch([Record(key=None, value=b"x", timestamp_ms=1)])
    data = PartitionProduceData(index=partition, records=records)
    topics = (TopicProduceData(name=TOPIC, partition_data=(data,)),)
    said = ask(client, broker, ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=topics), 3)
    assert isinstance(said, ProduceResponse)
    return ErrorCode(said.responses[0].partition_responses[0].error_code)


def folder(broker: KafkaBroker, partition: int) -> Path:
    return broker.data_dir / f"{TOPIC}-{partition}"


def log_size(broker: KafkaBroker, partition: int) -> int:
    return (folder(broker, partition) / f"{0:020}.log").stat().st_size


def goes_on(count: Callable[[], int]) -> None:
    """Wait until something has happened some times more."""
    before = count()
    until(lambda: count() >= before + OFTEN, "more of it")


def create(client: KazooClient) -> None:
    client.create(topic_path(TOPIC), assignment_payload(REPLICAS))


def in_sync(client: KazooClient, brokers: Mapping[int, KafkaBroker]) -> bool:
    """Whether every replica is in its ISR, and every broker has every replica and knows every leader."""
    found = roles(client)
    return (
        {each: isr for each, (_, isr) in found.items()} == dict.fromkeys(REPLICAS, EVERY)
        and all(folder(broker, each).is_dir() for broker in brokers.values() for each in REPLICAS)
        and all(view(client, broker) == found for broker in brokers)
    )


@pytest.fixture(scope="module", autouse=True)
def old_kafka() -> None:
    fetched(Role.BROKER_1_1)


@pytest.fixture
def start(server: EmbeddedZooKeeper, client: KazooClient, tmp_path: Path) -> Iterator[Callable[..., KafkaBroker]]:
    """Starts a broker, or one that was stopped again; the first of the cluster is the controller."""
    with ExitStack() as running:

        def one(number: int, protocol: str) -> KafkaBroker:
            spoken = {} if number == OLD else {"inter.broker.protocol.version": protocol}
            found = KafkaBroker(
                number,
                server.connect_string,
                tmp_path / "kafka",
                session_timeout_ms=40_000,
                role=Role.BROKER_1_1 if number == OLD else Role.BROKER,
                settings={"replica.lag.time.max.ms": LAG_MS[protocol], **spoken},
                loggers={"kafka.request.logger": "DEBUG" if number == OLD else "WARN"},
            )
            running.callback(found.kill)
            found.wait_until_started()
            until(lambda: client.exists(CONTROLLER) is not None, "a controller")
            return found

        yield one


@pytest.fixture
def cluster(start: Callable[..., KafkaBroker], client: KazooClient) -> Callable[..., dict[int, KafkaBroker]]:
    """Starts the three brokers, in the order that is told."""

    def three(protocol: str, *order: int) -> dict[int, KafkaBroker]:
        found = {each: start(each, protocol) for each in order}
        assert read_controller(client.get(CONTROLLER)[0]).brokerid == order[0]
        return found

    return three


def test_what_the_old_one_serves_is_what_the_lab_says_of_its_release(
    start: Callable[..., KafkaBroker], client: KazooClient
) -> None:
    """A client that asks for ApiVersions in a later version is not told in which it may."""
    start(OLD, COMMON)
    said = ask(client, OLD, ApiVersionsRequest(client_software_name="lab", client_software_version="1"), 3)
    assert isinstance(said, ApiVersionsResponse)
    assert (said.error_code, said.api_keys) == (ErrorCode.UNSUPPORTED_VERSION, ())
    said = ask(client, OLD, ApiVersionsRequest(), 0)
    assert isinstance(said, ApiVersionsResponse)
    served = {each.api_key: each.max_version for each in said.api_keys}
    ours = Release.V1_1.last_versions
    assert ours is not None
    assert {api: served[api] for api in ours} == ours
    assert ApiKey.ALTER_PARTITION not in served


@pytest.mark.parametrize("order", [(2, 3, 1), (1, 2, 3)], ids=["controller of 3.9.1", "controller of 1.1.1"])
def test_with_the_protocol_of_the_old_one_all_are_in_sync_and_delete(
    cluster: Callable[..., dict[int, KafkaBroker]], order: tuple[int, ...], client: KazooClient
) -> None:
    brokers = cluster(COMMON, *order)
    create(client)
    until(lambda: in_sync(client, brokers), "every ISR")
    for partition, (leader, *_) in REPLICAS.items():
        assert produce(client, leader, partition) is ErrorCode.NONE
    assert roles(client) == {0: (1, EVERY), 1: (2, EVERY)}  # so all three have the records
    client.create(f"{DELETE_TOPICS}/{TOPIC}")
    until(lambda: client.exists(topic_path(TOPIC)) is None, "the end of the deletion")
    assert not any(folder(broker, each).exists() for broker in brokers.values() for each in REPLICAS)
    read = {("LEADER_AND_ISR", 1), ("UPDATE_METADATA", 4), ("FETCH", 7), ("STOP_REPLICA", 0)}
    until(lambda: read <= requests(brokers[OLD], ANSWERED).keys(), "an answer to each request")
    assert not requests(brokers[OLD], REFUSED)


def test_a_controller_of_a_later_protocol_names_an_old_broker_the_leader_and_cannot_tell_it(
    cluster: Callable[..., dict[int, KafkaBroker]], start: Callable[..., KafkaBroker], client: KazooClient
) -> None:
    """It sends its first UpdateMetadata for ever, and no LeaderAndIsr after it. No one takes the followers out of the
    ISR, since only the leader would. With the protocol of the old one the cluster mends."""
    brokers = cluster(LATER, 2, 3, 1)
    old = brokers[OLD]
    create(client)
    until(lambda: roles(client).get(1) == (2, {2, 3}), "the end of a lag")
    goes_on(lambda: requests(old, REFUSED)["UPDATE_METADATA", 6])
    goes_on(lambda: requests(old, REFUSED)["FETCH", 12])
    assert UNSENT in brokers[2].logged()
    assert roles(client)[0] == (1, EVERY)
    until(lambda: all(view(client, each) == roles(client) for each in NEW), "metadata of new brokers")
    assert view(client, OLD) == {}
    assert not any(folder(old, each).exists() for each in REPLICAS)
    assert "LEADER_AND_ISR" not in old.logged()

    assert produce(client, OLD, 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(client, 2, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produce(client, 2, 1) is ErrorCode.NONE

    for each in (3, 2):  # the controller last
        brokers[each].stop()
        brokers[each] = start(each, COMMON)
        until(lambda: roles(client)[1][1] >= {2, 3}, "the return of a new broker")
    until(lambda: in_sync(client, brokers), "every ISR")
    assert produce(client, OLD, 0) is ErrorCode.NONE


def test_an_old_leader_takes_followers_of_a_later_protocol_out_of_the_isr(
    cluster: Callable[..., dict[int, KafkaBroker]], client: KazooClient
) -> None:
    """It refuses what they fetch with. The old broker can follow a new leader. A new broker gets no answer when it
    asks the old controller to let it shut down."""
    brokers = cluster(LATER, 1, 2, 3)
    old = brokers[OLD]
    create(client)
    until(lambda: roles(client).get(0) == (1, {1}), "the end of a lag")
    assert produce(client, OLD, 0) is ErrorCode.NONE
    goes_on(lambda: min(brokers[each].logged().count(UNFETCHED) for each in NEW))
    assert log_size(old, 0) > 0
    assert not any(log_size(brokers[each], 0) for each in NEW)

    assert produce(client, 2, 1) is ErrorCode.NONE
    assert roles(client)[1] == (2, EVERY)  # so all three have the record
    assert log_size(old, 1) == log_size(brokers[2], 1) > 0
    assert requests(old, REFUSED).keys() == {("FETCH", 12)}

    brokers[2].terminate()
    until(lambda: ("CONTROLLED_SHUTDOWN", 3) in requests(old, REFUSED), "a refusal to read what it asks")
    assert roles(client)[1] == (2, EVERY)


def test_a_leader_of_a_later_protocol_cannot_report_an_isr_to_an_old_controller(
    cluster: Callable[..., dict[int, KafkaBroker]], client: KazooClient
) -> None:
    """A follower that is paused keeps it from acknowledging, until the controller is one of 3.9.1. That is the leader
    itself: it has ended the lags of both others, whose sessions last."""
    brokers = cluster(LATER, 1, 2, 3)
    create(client)
    until(lambda: all(view(client, each).get(1) == (2, EVERY) for each in brokers), "the leader")
    assert produce(client, 2, 1) is ErrorCode.NONE
    sessions = [client.exists(broker_path(each)).ephemeralOwner for each in EVERY]
    brokers[3].pause()
    # A follower that lacks no record is in sync, however long it has not fetched.
    assert produce(client, 2, 1, timeout_ms=1000) is ErrorCode.REQUEST_TIMED_OUT
    goes_on(lambda: brokers[2].logged().count(UNREPORTED))
    assert produce(client, 2, 1, timeout_ms=1000) is ErrorCode.REQUEST_TIMED_OUT
    assert roles(client)[1] == (2, EVERY)

    brokers[OLD].kill()
    client.delete(CONTROLLER)
    assert produce(client, 2, 1) is ErrorCode.NONE
    assert roles(client)[1] == (2, {2})
    assert [client.exists(broker_path(each)).ephemeralOwner for each in EVERY] == sessions
