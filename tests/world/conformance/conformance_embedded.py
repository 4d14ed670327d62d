"""A real ZooKeeper under a conformance case, each session behind a proxy of its own."""

from __future__ import annotations

import socket
import time
from abc import abstractmethod
from collections.abc import Coroutine
from itertools import count
from typing import Any

from conformance_harness import EnsembleHarness, Harness

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_base import Ensemble
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.session import LiveSession, LiveZooKeeperFactory
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.ports import ZooKeeper
from rebalance_lab.world.process.states import RunState
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.connect_string import parse
from rebalance_lab.world.zk.messages import Connect, Operation, Request
from rebalance_lab.world.zk.server_list import ConnectWaits

_stories = count(1)

Server = EmbeddedZooKeeper | Ensemble[Any]

#: Waits before reconnects, where Java has one to two seconds.
QUICK_WAITS = ConnectWaits(random_us=10_000, round_us=0)


class RealServerHarness(Harness):
    """What all clients of real servers share. `usual`: where sessions go that name no server."""

    def __init__(self, server: Server, log: TransactionLog | EnsembleLog, usual: tuple[str, ...] | None = None) -> None:
        super().__init__()
        self.root = f"/conformance/{next(_stories)}"
        nodes = server.servers if isinstance(server, Ensemble) else {"z1": server}
        self._addresses = {name: parse(node.connect_string).servers[0] for name, node in nodes.items()}
        self._usual = usual or tuple(nodes)
        self.lab = LiveKernel()
        self.kernel = self.lab.kernel
        self._log = log
        log.poll()  # what was before is not this story's
        self._logged: list[Transaction] = []
        self._proxies: dict[ZooKeeper, dict[str, TcpProxy]] = {}

    @abstractmethod
    def _connect(self, connect: str, timeout_ms: int) -> ZooKeeper: ...

    @abstractmethod
    def _password(self, session: ZooKeeper) -> bytes: ...

    def _open(self, timeout_ms: int, servers: tuple[str, ...], chroot: str) -> ZooKeeper:
        wanted = {name: self._addresses[name] for name in servers or self._usual}
        proxies = {name: TcpProxy(self.lab.loop, each.host, each.port) for name, each in wanted.items()}
        for proxy in proxies.values():
            self.lab.on_close(proxy.close)
        hosts = ",".join(proxy.connect_string for proxy in proxies.values())
        session = self._connect(hosts + chroot, timeout_ms)
        self._proxies[session] = proxies
        return session

    def at(self, session: ZooKeeper) -> str:
        (server,) = [name for name, proxy in self._proxies[session].items() if proxy.joined_connections]
        return server

    def break_now(self, session: ZooKeeper) -> None:
        broken = sum(proxy.cut() for proxy in self._proxies[session].values())
        assert broken == 1, f"{session!r} has no connection to break"

    def hold(self, session: ZooKeeper) -> None:
        for proxy in self._proxies[session].values():
            proxy.hang()

    def release(self, session: ZooKeeper) -> None:
        for proxy in self._proxies[session].values():
            proxy.release()

    def lose_next_reply(self, session: ZooKeeper) -> None:
        self._proxies[session][self.at(session)].lose_next_reply()

    def cut(self, session: ZooKeeper, *, to_server: bool = False, to_client: bool = False) -> None:
        for proxy in self._proxies[session].values():
            proxy.silence(to_server=to_server, to_client=to_client)

    def heal(self, session: ZooKeeper) -> None:
        for proxy in self._proxies[session].values():
            proxy.heal()

    def expire(self, session: ZooKeeper) -> None:
        """A second connection takes the session over and closes it."""
        hello = codec.encode_connect(Connect(session.session_id, 1_000, 0, self._password(session)))
        server = self._addresses[self._usual[0]]
        with socket.create_connection((server.host, server.port), timeout=5) as connection:
            connection.sendall(hello)
            welcome = codec.read_connected(_frame(connection), 0, 37)
            assert welcome.session_id == session.session_id, "the session had expired before"
            connection.sendall(codec.encode(Request(1, Operation.CLOSE, "/")))
            _frame(connection)

    async def stop(self, session: ZooKeeper, duration_ms: int) -> None:
        """All that is on the loop stops: every session, and every proxy."""
        self.lab.loop.call_soon(time.sleep, duration_ms / 1000)
        await self.sleep_ms(duration_ms)

    def transactions(self) -> list[Transaction]:
        self._logged.extend(self._log.poll())
        return list(self._logged)

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.lab.run(coroutine, "story")

    def end(self) -> None:
        self.lab.close()


class EmbeddedHarness(RealServerHarness):
    """Sessions of our own."""

    kind = "embedded"

    def __init__(self, server: Server, log: TransactionLog | EnsembleLog, usual: tuple[str, ...] | None = None) -> None:
        super().__init__(server, log, usual)
        random = RandomStream(self.root, "conformance", "waits")
        self._factory = LiveZooKeeperFactory(self.kernel, self.lab.loop, random, waits=QUICK_WAITS)
        self.lab.on_close(self._factory.close)

    def _connect(self, connect: str, timeout_ms: int) -> ZooKeeper:
        return self._factory.open(connect, timeout_ms)

    def _password(self, session: ZooKeeper) -> bytes:
        assert isinstance(session, LiveSession)
        return session._password


class EmbeddedEnsembleHarness(EmbeddedHarness, EnsembleHarness):
    """Three real servers."""

    def __init__(self, ensemble: EmbeddedEnsemble | ContainerEnsemble, log: EnsembleLog) -> None:
        super().__init__(ensemble, log)
        self._ensemble = ensemble

    async def leader(self) -> str:
        return await self._ensemble.leader()

    def kill(self, server: str) -> None:
        self._ensemble.kill(server)

    async def start(self, server: str) -> None:
        self._ensemble.start_node(server)
        await self._ensemble.serving(server)

    def pause(self, server: str) -> None:
        self._ensemble.pause(server)

    def resume(self, server: str) -> None:
        self._ensemble.resume(server)

    def lag(self, server: str, delay_ms: int) -> None:
        self._ensemble.lag(server, delay_ms)


def make_whole(ensemble: EmbeddedEnsemble) -> None:
    """Undo what a story did to the servers, or left undone when it failed."""
    for name, node in ensemble.servers.items():
        if node.state is RunState.STOPPED:
            ensemble.resume(name)
        elif node.state is RunState.GONE:
            ensemble.start_node(name)
        ensemble.lag(name, 0)
    ensemble.wait_until_ready()


def _frame(connection: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(connection, 4), "big")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = b""
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        assert part, "the server closed the connection"
        parts += part
    return parts
