"""Requests that come to a broker: which versions it names, and what it does not answer."""

from __future__ import annotations

import pytest
from broker_requests import create, fetch
from broker_stage import BrokerStage

from rebalance_lab.broker.broker import MOST_COORDINATORS
from rebalance_lab.broker.dispatch import HANDLERS, advertised
from rebalance_lab.broker.versions import ProtocolVersion, Release
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.describe_cluster import DescribeClusterRequest
from rebalance_lab.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest
from rebalance_lab.world.network import ConnectionLost


@pytest.mark.parametrize("version", range(5))
def test_a_client_learns_what_is_served(version: int) -> None:
    named = {"client_software_name": "librdkafka", "client_software_version": "2.1"} if version >= 3 else {}

    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(ApiVersionsRequest(**named), version)
        assert found.error_code == ErrorCode.NONE
        served = {ApiKey(each.api_key): (each.min_version, each.max_version) for each in found.api_keys}
        assert served == advertised(Release.V3_9)

    BrokerStage().play(story)


def test_every_served_version_exists_and_every_module_is_found() -> None:
    assert len(HANDLERS) == 23
    for key, handler in HANDLERS.items():
        assert handler.versions.first in APIS[key].versions
        assert handler.versions.last in APIS[key].versions


def test_only_produce_is_advertised_from_a_version_that_is_not_served() -> None:
    """librdkafka up to 2.11 compresses only if Produce 0 is there (KAFKA-18659)."""
    more = {key for key, handler in HANDLERS.items() if advertised(Release.V3_9)[key] != handler.versions}
    assert more == {ApiKey.PRODUCE}
    assert advertised(Release.V3_9)[ApiKey.PRODUCE] == (0, 9)


def test_a_client_of_the_future_learns_to_ask_again() -> None:
    """It finds the versions of ApiVersions in the answer. That it is written as version 0, the codec's test says."""

    async def story(stage: BrokerStage) -> None:
        connection = await stage.connect()
        found = await connection.request(Call(ApiKey.API_VERSIONS, 99, "c", None))
        assert isinstance(found, ApiVersionsResponse)
        assert found.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(each.api_key, each.min_version, each.max_version) for each in found.api_keys] == [(18, 0, 4)]

    BrokerStage(seed=1).play(story)


@pytest.mark.parametrize("name", ["", "-x", "a b", "\N{SNOWMAN}"])
def test_a_client_s_software_needs_a_name(name: str) -> None:
    async def story(stage: BrokerStage) -> None:
        asked = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        assert (await stage.ask(asked, 3)).error_code == ErrorCode.INVALID_REQUEST

    BrokerStage().play(story)


@pytest.mark.parametrize("version", range(4))
def test_there_is_no_coordinator_yet(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(FindCoordinatorRequest(key="g"), version)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    BrokerStage().play(story)


def test_a_client_that_waits_for_a_coordinator_is_reported_once() -> None:
    """The client does not say it, and asks again and again."""

    async def story(stage: BrokerStage) -> None:
        for name in ("g", "g", "h", "g", "\n"):
            await stage.ask(FindCoordinatorRequest(key=name), 3)
        await stage.ask(FindCoordinatorRequest(key="g", key_type=1), 3)
        for number in range(200):
            await stage.ask(FindCoordinatorRequest(key=f"g{number}"), 3)
        told = [str(each["message"]) for each in stage.said("warning")]
        why = "this broker serves no consumer groups and no transactions, so the client waits for ever"
        whose = ["consumer group 'g'", "consumer group 'h'", r"consumer group '\n'", "transactional id 'g'"]
        assert told[:4] == [f"a client asks for the coordinator of {each}; {why}" for each in whose]
        assert len(told) == MOST_COORDINATORS

    BrokerStage().play(story)


def test_an_idle_connection_is_closed() -> None:
    """One that asks now and then stays, and so does one whose request takes long."""

    async def story(stage: BrokerStage) -> None:
        idle, busy, waiting = [await stage.connect() for _ in range(3)]
        await create(stage)
        answer = waiting.request(Call.of(fetch(0, max_wait_ms=19_000), 12, "c"))
        for _ in range(5):
            await busy.request(Call.of(MetadataRequest(topics=()), 9, "c"))
            await stage.tasks.sleep(4_000_000)
        assert [each.ended.done for each in (idle, busy, waiting)] == [True, False, False]
        assert answer.done
        assert not stage.said("connection closed")
        await stage.tasks.sleep(11_000_000)
        assert busy.ended.done
        assert waiting.ended.done

    BrokerStage(connections_max_idle_ms=10_000).play(story)


def test_a_request_above_the_limit_closes_its_connection() -> None:
    async def story(stage: BrokerStage) -> None:
        connection = await stage.connect()
        with pytest.raises(ConnectionLost):
            await connection.request(Call.of(FindCoordinatorRequest(key="g" * 3000), 3, "c"))
        (closed,) = stage.said("connection closed")
        assert "the limit is 2000" in str(closed["why"])

    BrokerStage(socket_request_max_bytes=2000).play(story)


def test_what_is_not_served_closes_the_connection_and_no_other() -> None:
    async def story(stage: BrokerStage) -> None:
        other = await stage.connect()
        with pytest.raises(ConnectionLost):
            await stage.ask(MetadataRequest(topics=None), 6)
        with pytest.raises(ConnectionLost):
            await stage.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 0)
        assert [each["why"] for each in stage.said("connection closed")] == [
            "METADATA version 6 is not served here, 0 to 5 are",
            "DESCRIBE_CLUSTER is not served here",
        ]
        assert not other.ended.done
        assert (await stage.ask(MetadataRequest(topics=None), 5)).topics == ()

    BrokerStage(lab_release=Release.V1_1, inter_broker_protocol_version=ProtocolVersion.V1_1).play(story)


def test_before_2_4_a_client_of_the_future_learns_only_that_it_asks_in_vain() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(ApiVersionsRequest(), 3)
        assert (found.error_code, found.api_keys) == (ErrorCode.UNSUPPORTED_VERSION, ())
        found = await stage.ask(ApiVersionsRequest(), 0)
        served = {ApiKey(each.api_key): each.max_version for each in found.api_keys}
        assert served == Release.V1_1.last_versions

    BrokerStage(lab_release=Release.V1_1, inter_broker_protocol_version=ProtocolVersion.V1_1).play(story)
