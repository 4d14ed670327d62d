"""A live kernel, sessions on it, and a scripted server, for the tests of the live world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from scripted_server import ScriptedServer

from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.session import LiveSession, LiveZooKeeperFactory
from rebalance_lab.world.ports import SessionEventKind
from rebalance_lab.world.zk.server_list import ConnectWaits

#: Waits before reconnects, where Java has one to two seconds: what they are is tested in test_hosts.
QUICK_WAITS = ConnectWaits(random_us=10_000, round_us=0)

#: No step of a test takes longer on a machine that is not overloaded by far.
BOUND_US = 20_000_000


class Bench:
    """One test's kernel, factory and helpers. `root` is a path of its own on the shared server."""

    def __init__(self, live: LiveKernel, server: EmbeddedZooKeeper, root: str) -> None:
        self.live = live
        self.server = server
        self.root = root
        self.factory = LiveZooKeeperFactory(live.kernel, live.loop, RandomStream(1, "test", root), waits=QUICK_WAITS)
        self.proxies: list[TcpProxy] = []

    def run(self, story: Callable[[], Awaitable[Any]], bound_us: int = BOUND_US) -> Any:
        """Run a story on the kernel, bounded."""

        async def bounded() -> Any:
            async with self.live.kernel.timeout(bound_us, "the test"):
                return await story()

        return self.live.run(bounded())

    async def connected(self, connect: str | None = None, timeout_ms: int = 5000) -> LiveSession:
        """A new session that is connected."""
        session = self.factory.open(connect or self.server.connect_string, timeout_ms)
        await self.seen(session, SessionEventKind.CONNECTED)
        return session

    async def seen(self, session: LiveSession, kind: SessionEventKind) -> None:
        """The next event of a session is of this kind."""
        event = await session.events.get()
        assert event.kind is kind, f"{event} instead of {kind}; {session.last_loss}"
        assert event.session_id == session.session_id

    def proxy(self) -> TcpProxy:
        """A proxy before the server."""
        proxy = TcpProxy(self.live.loop, "127.0.0.1", self.server.port)
        self.proxies.append(proxy)
        return proxy

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.live.kernel.sleep(1000)


@pytest.fixture
def live() -> Iterator[LiveKernel]:
    with LiveKernel() as kernel:
        yield kernel


@pytest.fixture
def bench(live: LiveKernel, embedded_zookeeper: EmbeddedZooKeeper, request: pytest.FixtureRequest) -> Iterator[Bench]:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    bench = Bench(live, embedded_zookeeper, f"/{name}")

    async def make_root() -> None:
        session = await bench.connected()
        await session.create(bench.root, b"")
        await session.close()

    bench.run(make_root)
    yield bench
    for proxy in bench.proxies:
        proxy.close()
    bench.factory.close()
    assert bench.factory.sessions == ()


@pytest.fixture
def factory(live: LiveKernel) -> Iterator[LiveZooKeeperFactory]:
    """For scripted servers."""
    factory = LiveZooKeeperFactory(live.kernel, live.loop, RandomStream(3, "test", "scripted"), waits=QUICK_WAITS)
    yield factory
    factory.close()


@pytest.fixture
def server(live: LiveKernel) -> Iterator[ScriptedServer]:
    server = ScriptedServer(live)
    yield server
    server.close()
