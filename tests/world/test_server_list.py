"""Which server a session tries next, and how long it waits: one table, and both worlds keep to it.

Source: StaticHostProvider and ClientCnxn of ZooKeeper 3.4.6 and 3.9.3.
"""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.live import session as live_session
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.ports import SessionState
from rebalance_lab.world.simulated.session import SimulatedSession
from rebalance_lab.world.zk.connect_string import NO_CHROOT, Server
from rebalance_lab.world.zk.messages import Connected
from rebalance_lab.world.zk.server_list import JAVA_WAITS, ConnectWaits, ServerList
from rebalance_lab.world.zk.session import Session

#: What becomes of an attempt: no TCP connection; one that is closed without a session; a session.
UNREACHABLE, CLOSED, SERVED = "unreachable", "closed", "served"

#: servers, outcome of each attempt -> (server, waits out a round, waits a random time) of the
#: attempt after it. Servers count from 0 in the order they are tried.
TABLE = [
    (1, [SERVED, SERVED, SERVED], [(0, True, True), (0, True, True), (0, True, True)]),
    (1, [UNREACHABLE, UNREACHABLE], [(0, True, False), (0, True, False)]),
    (1, [UNREACHABLE, CLOSED, UNREACHABLE], [(0, True, False), (0, True, True), (0, True, True)]),
    (2, [SERVED, SERVED, SERVED], [(1, False, True), (0, False, True), (1, False, True)]),
    (2, [SERVED, CLOSED, UNREACHABLE], [(1, False, True), (0, True, True), (1, False, True)]),
    (3, [UNREACHABLE] * 6, [(1, False, False), (2, False, False), (0, True, False)] * 2),
    (3, [SERVED] * 4, [(1, False, True), (2, False, True), (0, False, True), (1, False, True)]),
    (3, [CLOSED, SERVED, CLOSED, CLOSED], [(1, False, True), (2, False, True), (0, False, True), (1, True, True)]),
    (3, [SERVED, UNREACHABLE, UNREACHABLE], [(1, False, True), (2, False, True), (0, True, True)]),
]


@pytest.mark.parametrize(("servers", "outcomes", "expected"), TABLE)
def test_the_server_and_the_waits_of_each_attempt(
    servers: int, outcomes: list[str], expected: list[tuple[int, bool, bool]]
) -> None:
    server_list = ServerList(tuple(range(servers)), lambda limit_us: limit_us // 2)
    assert server_list.next() == (0, 0)  # the very first attempt
    for outcome, (server, in_full, random) in zip(outcomes, expected, strict=True):
        if outcome is not UNREACHABLE:
            server_list.opened()
        if outcome is SERVED:
            server_list.established()
        assert server_list.next() == (server, 1_000_000 * in_full + 500_000 * random)


def test_the_random_wait_is_any_time_below_a_second() -> None:
    server_list = ServerList(("z1", "z2", "z3"), RandomStream(1, "test", "server_list").below, JAVA_WAITS)
    server_list.opened()
    waits_us = [server_list.next()[1] for _ in range(300)][1::3]  # where no round ends
    assert min(waits_us) < 50_000
    assert 950_000 < max(waits_us) < 1_000_000


def test_a_wait_of_nothing_draws_nothing() -> None:
    def below(limit_us: int) -> int:
        raise AssertionError(f"drew a number below {limit_us}")

    server_list = ServerList(("z1",), below, ConnectWaits(random_us=0, round_us=7))
    server_list.opened()
    assert [server_list.next()[1] for _ in range(3)] == [0, 7, 7]


# -- the two worlds -----------------------------------------------------------------------------


class FakeConnection:
    """A connection that does nothing."""

    sent_us = 0

    def __init__(self, server: Any) -> None:
        self.server = server
        self.accepted = False

    def to_server(self, message: object) -> None: ...
    def leave_as_client(self) -> None: ...

    def heard_us(self, now_us: int) -> int:
        return now_us


def waits_us(session: Session[Any], connections: list[FakeConnection], outcomes: list[str], world: Any) -> list[int]:
    """How long each attempt but the first was put off, when the attempts come to these outcomes."""
    found = []
    for outcome in outcomes:
        connection: Any = connections[-1]
        connection.accepted = outcome is not UNREACHABLE
        if outcome is SERVED:
            session.arrived(connection, Connected(1, 2000))
        before_us, attempts = world.now_us(), len(connections)
        session.ended(connection)
        while len(connections) == attempts:
            assert world.driver.advance(before_us + 10_000_000)
        found.append(world.now_us() - before_us)
    assert session.state is SessionState.CONNECTING  # however often it failed: only a server ends a session
    return found


def live_waits_us(servers: int, outcomes: list[str], seed: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    connections: list[FakeConnection] = []

    def connect(_kernel: object, _loop: object, _session: object, server: Server, *_: object) -> FakeConnection:
        connections.append(FakeConnection(server))
        return connections[-1]

    monkeypatch.setattr(live_session, "Link", connect)
    simulation = Simulation(seed)
    monkeypatch.setattr(Session, "limit_attempt", lambda _session: None)
    factory = LiveZooKeeperFactory(simulation.kernel, None, RandomStream(seed, "test", "live"))
    session = factory.open(",".join(f"z{number}" for number in range(servers)), 2000)
    found = waits_us(session, connections, outcomes, simulation.kernel)
    assert {each.server for each in connections} <= {Server(f"z{number}", 2181) for number in range(servers)}
    return found


class FakeEndpoint:
    """A process of the simulator, whose connections do nothing."""

    cut = False
    process = None
    name = "m1"
    request_limit_bytes = 1000

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.connections: list[FakeConnection] = []

    def connect(self, session: object, server: str, message: object) -> FakeConnection:
        self.connections.append(FakeConnection(server))
        return self.connections[-1]


def simulated_waits_us(servers: int, outcomes: list[str], seed: int) -> list[int]:
    simulation = Simulation(seed)
    endpoint: Any = FakeEndpoint(simulation.kernel)
    names: tuple[Any, ...] = tuple(f"z{number}" for number in range(servers))
    server_list = ServerList(names, RandomStream(seed, "test", "simulated").below)
    session = SimulatedSession(endpoint, server_list, NO_CHROOT, 2000)
    return waits_us(session, endpoint.connections, outcomes, simulation.kernel)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_both_worlds_wait_alike(servers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same attempts wait out a round in both, and the random waits spread alike."""
    draw = RandomStream(servers, "test", "outcomes")
    outcomes = [UNREACHABLE] + [(UNREACHABLE, CLOSED, SERVED)[draw.below(3)] for _ in range(600)]
    waits = (live_waits_us(servers, outcomes, 1, monkeypatch), simulated_waits_us(servers, outcomes, 1))
    rounds = [[wait_us // 1_000_000 for wait_us in each] for each in waits]
    assert rounds[0] == rounds[1]
    assert len(rounds[0]) == len(outcomes)
    if servers == 1:
        assert set(rounds[0]) == {1}
    for each in waits:
        random_us = [wait_us % 1_000_000 for wait_us in each if wait_us % 1_000_000]
        assert 450_000 < sum(random_us) / len(random_us) < 550_000
        assert each[0] == 1_000_000 * (servers == 1)  # nothing was reached yet
