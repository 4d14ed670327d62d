"""Requests that come to a broker: which versions it names, and what it does not answer."""

from __future__ import annotations

import pytest
from broker_stage import BrokerStage

from rebalance_lab.broker.dispatch import SERVED
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest
from rebalance_lab.world.network import ConnectionLost


@pytest.mark.parametrize("version", range(5))
def test_a_client_learns_what_is_served(version: int) -> None:
    named = {"client_software_name": "librdkafka", "client_software_version": "2.1"} if version >= 3 else {}

    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(ApiVersionsRequest(**named), version)
        assert found.error_code == ErrorCode.NONE
        assert {ApiKey(each.api_key): (each.min_version, each.max_version) for each in found.api_keys} == dict(SERVED)

    BrokerStage().play(story)


def test_every_served_version_exists() -> None:
    for key, versions in SERVED.items():
        assert versions.first in APIS[key].versions
        assert versions.last in APIS[key].versions


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


def test_what_is_not_served_closes_the_connection_and_no_other() -> None:
    async def story(stage: BrokerStage) -> None:
        other = await stage.connect()
        with pytest.raises(ConnectionLost):
            await stage.ask(MetadataRequest(topics=None), 10)
        with pytest.raises(ConnectionLost):
            await stage.ask(FindCoordinatorRequest(key="g"), 0)
        assert [each["why"] for each in stage.said("connection closed")] == [
            "METADATA version 10 is not served here, 0 to 9 are",
            "FIND_COORDINATOR is not served here",
        ]
        assert not other.ended.done
        assert (await stage.ask(MetadataRequest(topics=None), 9)).topics == ()

    BrokerStage().play(story)


def test_a_request_that_fails_unexpectedly_is_reported_and_the_broker_lives_on() -> None:
    async def story(stage: BrokerStage) -> None:
        stage.parts.metadata.topics = None
        with pytest.raises(ConnectionLost):
            await stage.ask(MetadataRequest(topics=None), 9)
        (closed,) = stage.said("connection closed")
        assert "TypeError" in str(closed["why"])
        assert (await stage.ask(ApiVersionsRequest(), 0)).error_code == ErrorCode.NONE

    BrokerStage().play(story)
