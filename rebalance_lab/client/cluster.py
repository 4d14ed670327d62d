"""A client's view of a cluster: its brokers, its leaders, and connections to them (`org.apache.kafka.clients`, 3.9.1).

Each broker is asked once which versions it serves; every request then goes out in the newest that both know. Versions
that speak of topic ids are not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from rebalance_lab.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import Address, Connection, ConnectionLost, Network, NetworkError

REQUEST_TIMEOUT_MS = 30_000
CONNECT_TIMEOUT_MS = 10_000

#: The newest versions used here, where they are not the newest of all.
NEWEST: Mapping[ApiKey, int] = {
    ApiKey.FETCH: 12,
    ApiKey.METADATA: 9,
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
}

_APIS_BY_NUMBER = {int(each): each for each in APIS}

_SOFTWARE = "rebalance-lab"


class NoBroker(Exception):
    """No broker could be reached, or the one that is needed could not. The message names them, and why.
    `outcome_unknown`: whether a broker may have carried out the request all the same."""

    def __init__(self, why: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(why)
        self.outcome_unknown = outcome_unknown


class NotServed(Exception):
    """The broker does not serve a request in any version that this client knows."""


class RefusedByBroker(Exception):
    """A broker's error. `code` is Kafka's."""

    def __init__(self, code: int, what: str, message: str | None = None) -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{what}: {self.code.name}{f' ({message})' if message else ''}")


class _Broker:
    """A connection, and what the broker at its other end serves."""

    def __init__(self, connection: Connection[Call, Message], client_id: str, timeout_us: int) -> None:
        self.connection = connection
        self._client_id = client_id
        self._timeout_us = timeout_us
        self._newest: dict[int, int] = {}

    async def greet(self) -> None:
        """Ask what it serves. Raises NetworkErrors and RefusedByBroker."""
        asked = ApiVersionsRequest(client_software_name=_SOFTWARE, client_software_version="1")
        response = await self._send(asked, 3)
        assert isinstance(response, ApiVersionsResponse)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:  # before Kafka 2.4
            response = await self._send(asked, 0)
            assert isinstance(response, ApiVersionsResponse)
        if response.error_code:
            raise RefusedByBroker(response.error_code, f"ApiVersions of {self.connection.address}")
        for each in response.api_keys:
            api = _APIS_BY_NUMBER.get(each.api_key)
            if api is not None:
                newest = min(each.max_version, NEWEST.get(api, APIS[api].versions.last))
                if newest >= max(each.min_version, APIS[api].versions.first):
                    self._newest[api] = newest

    async def ask(self, message: Message) -> Message:
        """Raises NetworkErrors and NotServed."""
        return await self._send(message, self._version(message))

    async def tell(self, message: Message) -> None:
        """Send what gets no answer. Raises NetworkErrors and NotServed."""
        await self.connection.send(Call.of(message, self._version(message), self._client_id))

    def _version(self, message: Message) -> int:
        """The newest that both know. Raises NotServed."""
        key = key_of(type(message))
        if key not in self._newest:
            raise NotServed(f"the broker at {self.connection.address} does not serve {APIS[key].name}")
        return self._newest[key]

    async def _send(self, message: Message, version: int) -> Message:
        asked = Call.of(message, version, self._client_id)
        return await self.connection.request(asked, timeout_us=self._timeout_us)


class ClusterClient:
    """`bootstrap`: addresses of some of its brokers. `request_timeout_ms`: how long a broker may take to answer."""

    def __init__(
        self,
        tasks: Kernel,
        network: Network,
        bootstrap: Sequence[Address],
        client_id: str,
        *,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self.nodes: dict[int, Address] = {}
        self.controller_id = -1
        self._tasks = tasks
        self._network = network
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._leaders: dict[tuple[str, int], int] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self._open: dict[Address, _Broker] = {}

    # -- requests ---------------------------------------------------------------------------

    async def ask_any(self, message: Message) -> Any:
        """The answer of the first broker that answers. Raises NoBroker and NotServed."""
        failed = []
        for address in dict.fromkeys((*self.nodes.values(), *self._bootstrap)):
            try:
                return await self._ask(address, message)
            except NetworkError as error:
                failed.append(error)
        unknown = any(isinstance(each, ConnectionLost) for each in failed)
        raise NoBroker(f"no broker answers: {'; '.join(map(str, failed))}", outcome_unknown=unknown)

    async def ask_controller(self, message: Message) -> Any:
        """Raises NoBroker and NotServed."""
        if self.controller_id not in self.nodes:
            await self.refresh([])
        return await self._ask_node(self.controller_id, "the controller", message)

    async def ask_leader(self, topic: str, partition: int, message: Message) -> Any:
        """Raises NoBroker, also for a partition without a leader, and NotServed."""
        return await self._ask_node(await self.leader(topic, partition), f"the leader of {topic}-{partition}", message)

    async def reach_leader(self, topic: str, partition: int) -> None:
        """Connect to the leader; if that fails, nothing was sent. Raises NoBroker, RefusedByBroker and
        NetworkErrors."""
        node = await self.leader(topic, partition)  # which may replace `nodes`
        await self._broker(self.nodes[node])

    async def ask_node(self, node: int, message: Message) -> Any:
        """The answer of one broker. Raises NoBroker and NotServed."""
        return await self._ask_node(node, f"broker {node}", message)

    async def tell_leader(self, topic: str, partition: int, message: Message) -> None:
        """Send what gets no answer. Raises NoBroker and NotServed."""
        node = await self.leader(topic, partition)
        try:
            await (await self._broker(self.nodes[node])).tell(message)
        except NetworkError as error:
            self.forget_leader(topic, partition)
            what = f"the leader of {topic}-{partition}, broker {node}"
            raise NoBroker(f"{what}, is not reached: {error}") from None

    async def _ask_node(self, node: int, what: str, message: Message) -> Any:
        if node not in self.nodes:
            raise NoBroker(f"{what} is not known to the brokers at {', '.join(map(str, self._bootstrap))}")
        try:
            return await self._ask(self.nodes[node], message)
        except NetworkError as error:
            self._leaders.clear()
            self.controller_id = -1
            unknown = isinstance(error, ConnectionLost)
            raise NoBroker(f"{what}, broker {node}, does not answer: {error}", outcome_unknown=unknown) from None

    async def _ask(self, address: Address, message: Message) -> Message:
        return await (await self._broker(address)).ask(message)

    async def _broker(self, address: Address) -> _Broker:
        """Raises NetworkErrors and RefusedByBroker."""
        found = self._open.get(address)
        if found is None or found.connection.ended.done:
            timeout_us = min(CONNECT_TIMEOUT_MS, self._request_timeout_ms) * 1000
            connection = await self._network.connect(address, KafkaCodec(), timeout_us=timeout_us)
            found = _Broker(connection, self._client_id, self._request_timeout_ms * 1000)
            try:
                await found.greet()
            except RefusedByBroker:
                connection.close()
                raise
            self._open[address] = found
        return found

    # -- metadata ---------------------------------------------------------------------------

    async def refresh(self, topics: Sequence[str] | None, *, create: bool = False) -> tuple[MetadataResponseTopic, ...]:
        """Learn of brokers and of these topics; None for all. `create`: have topics made that are not there. Raises
        NoBroker."""
        wanted = None if topics is None else tuple(MetadataRequestTopic(name=each) for each in topics)
        response: MetadataResponse = await self.ask_any(
            MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        )
        self.nodes = {each.node_id: Address(each.host, each.port) for each in response.brokers}
        self.controller_id = response.controller_id
        for topic in response.topics:
            for each in topic.partitions:
                partition = topic.name or "", each.partition_index
                self._leaders[partition], self._epochs[partition] = each.leader_id, each.leader_epoch
        return response.topics

    async def leader(self, topic: str, partition: int) -> int:
        """The broker that leads. Raises NoBroker if there is none, and RefusedByBroker if there is no such topic."""
        if self._leaders.get((topic, partition), -1) not in self.nodes:
            (described,) = await self.refresh([topic])
            if described.error_code:
                raise RefusedByBroker(described.error_code, f"topic {topic}")
        leader = self._leaders.get((topic, partition))
        if leader is None:
            raise RefusedByBroker(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {topic}-{partition}")
        if leader not in self.nodes:
            raise NoBroker(f"partition {topic}-{partition} has no leader now")
        return leader

    async def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch in which that broker leads, as far as the brokers have said so. Errors as of `leader`."""
        await self.leader(topic, partition)
        return self._epochs[topic, partition]

    def known_leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads, as far as is known without asking."""
        leader = self._leaders.get((topic, partition))
        return leader if leader in self.nodes else None

    def forget_leader(self, topic: str, partition: int) -> None:
        """Ask for the leader again before the next request."""
        self._leaders.pop((topic, partition), None)

    def close(self) -> None:
        for each in self._open.values():
            each.connection.close()
        self._open.clear()
