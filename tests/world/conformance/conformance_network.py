"""What a conformance case of the port to a network may do to its world."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rebalance_lab.kernel import Future, Kernel, Process, RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.live.network import LinkState, LiveNetwork
from rebalance_lab.world.network import (
    DEFAULT_LIMITS,
    Address,
    Connection,
    Limits,
    Listener,
    Network,
    NetworkError,
    ServerConnection,
)
from rebalance_lab.world.simulated.network import SimulatedNetwork
from rebalance_lab.world.simulated.settings import NetworkSettings

STORY_LIMIT_US = 100_000_000
CONNECT_LIMIT_US = 10_000_000
ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Ask:
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    text: str


class NoText(Exception):
    pass


class TextCodec:
    """A correlation id and UTF-8."""

    malformed: tuple[type[Exception], ...] = (NoText,)

    def encode_request(self, correlation_id: int, request: Ask) -> bytes:
        return correlation_id.to_bytes(ID_BYTES, "big") + request.text.encode()

    def decode_request(self, frame: bytes) -> tuple[int, Ask]:
        correlation_id, text = self._read(frame)
        return correlation_id, Ask(text)

    def encode_reply(self, correlation_id: int, request: Ask, reply: Told) -> bytes:
        return correlation_id.to_bytes(ID_BYTES, "big") + reply.text.encode()

    def decode_reply(self, request: Ask, frame: bytes) -> tuple[int, Told]:
        correlation_id, text = self._read(frame)
        return correlation_id, Told(text)

    def _read(self, frame: bytes) -> tuple[int, str]:
        if len(frame) < ID_BYTES:
            raise NoText(f"{len(frame)} bytes are no correlation id")
        try:
            return int.from_bytes(frame[:ID_BYTES], "big"), frame[ID_BYTES:].decode()
        except UnicodeDecodeError as error:
            raise NoText(str(error)) from error


class Mumble(TextCodec):
    """What it writes cannot be read."""

    def encode_request(self, correlation_id: int, request: Ask) -> bytes:
        return b"?"

    def encode_reply(self, correlation_id: int, request: Ask, reply: Told) -> bytes:
        return b"?"


class Confused(TextCodec):
    """It answers another request."""

    def encode_reply(self, correlation_id: int, request: Ask, reply: Told) -> bytes:
        return super().encode_reply(correlation_id + 1, request, reply)


TEXT = TextCodec()

NetworkStory = Callable[["NetworkHarness"], Awaitable[None]]


class NetworkHarness(ABC):
    """The hosts a, b and c, each with a process. `carries_bytes`: so that a frame may be too long."""

    kernel: Kernel
    carries_bytes = True

    def __init__(self) -> None:
        self.networks: dict[str, Network] = {host: self._network(host) for host in ("a", "b", "c")}

    @abstractmethod
    def _network(self, host: str) -> Network: ...

    @abstractmethod
    def set_link(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_us: tuple[int, int] = (0, 0)
    ) -> bool:
        """What is sent from `one` to `other`, and the other way, is lost or slow from now. True if that state has done
        something to a message since the last call."""

    @abstractmethod
    def kill(self, host: str) -> None:
        """The process of a host dies."""

    @abstractmethod
    def run(self, story: NetworkStory) -> None: ...

    # -- for all ----------------------------------------------------------------------------

    async def listen(
        self, host: str = "b", codec: TextCodec = TEXT, *, limits: Limits = DEFAULT_LIMITS
    ) -> Listener[Ask, Told]:
        return await self.networks[host].listen(codec, limits=limits)

    def connect(
        self,
        address: Address,
        host: str = "a",
        codec: TextCodec = TEXT,
        *,
        limits: Limits = DEFAULT_LIMITS,
        timeout_us: int = CONNECT_LIMIT_US,
    ) -> Future[Connection[Ask, Told]]:
        return self.networks[host].connect(address, codec, timeout_us=timeout_us, limits=limits)

    async def pair(
        self, *, limits: Limits = DEFAULT_LIMITS
    ) -> tuple[Connection[Ask, Told], ServerConnection[Ask, Told]]:
        """A connection from a to b, and its other end."""
        listener = await self.listen(limits=limits)
        client = await self.connect(listener.address, limits=limits)
        return client, await listener.accept()

    async def told(self, story: NetworkStory) -> None:
        async with self.kernel.timeout(STORY_LIMIT_US, "the story"):
            await story(self)


class SimulatedNetworkHarness(NetworkHarness):
    def __init__(self, seed: int, *, through_bytes: bool, settings: NetworkSettings | None = None) -> None:
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        stream = RandomStream(seed, "network", "links")
        self.network = SimulatedNetwork(self.kernel, settings or NetworkSettings(), stream, through_bytes=through_bytes)
        self.carries_bytes = through_bytes
        self.processes: dict[str, Process] = {}
        self.listening: list[Address] = []
        super().__init__()

    def _network(self, host: str) -> Network:
        self.processes[host] = self.kernel.process(host)
        return self.network.port(self.processes[host], host, self.listening.append)

    def set_link(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_us: tuple[int, int] = (0, 0)
    ) -> bool:
        return self.network.set_link(one, other, silent=silent, slow_us=slow_us) != ""

    def kill(self, host: str) -> None:
        self.processes[host].kill()

    def run(self, story: NetworkStory) -> None:
        try:
            self.simulation.run(self.told(story), "story")
        finally:
            self.simulation.close()


class LiveNetworkHarness(NetworkHarness):
    def __init__(self) -> None:
        self._live = LiveKernel()
        self.kernel = self._live.kernel
        self.listening: dict[str, list[Address]] = {}
        self._ports: dict[str, LiveNetwork] = {}
        super().__init__()

    def _network(self, host: str) -> Network:
        addresses = self.listening[host] = []
        network = self._ports[host] = LiveNetwork(self.kernel, self._live.loop, addresses.append)
        self._live.on_close(network.close)
        return network

    def set_link(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_us: tuple[int, int] = (0, 0)
    ) -> bool:
        counts = [
            self._ports[here].set_link(
                self.listening[there],
                LinkState(silent[way], silent[1 - way], slow_us[way], slow_us[1 - way]),
            )
            for way, (here, there) in enumerate(((one, other), (other, one)))
        ]
        return any(each.held_bytes or each.slowed_bytes or each.hung for each in counts)

    def kill(self, host: str) -> None:
        self._ports[host].close()

    def run(self, story: NetworkStory) -> None:
        with self._live:
            self._live.run(self.told(story), "story")


OnNetwork = Callable[[NetworkStory], None]


async def refused(future: Future[Any], kind: type[NetworkError], why: str | None = None) -> None:
    with pytest.raises(NetworkError, match=why) as caught:
        await future
    assert type(caught.value) is kind


async def answer(server: ServerConnection[Ask, Told], text: str) -> None:
    """Receive a request that asks this, and answer it in capitals."""
    assert await server.receive() == Ask(text)
    await server.reply(Told(text.upper()))


async def asks(client: Connection[Ask, Told], server: ServerConnection[Ask, Told], text: str) -> None:
    """One request and its reply."""
    reply = client.request(Ask(text))
    await answer(server, text)
    assert await reply == Told(text.upper())
