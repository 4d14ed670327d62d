"""The states of a session: every legal move is made, and no other one is possible."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from rebalance_lab.kernel import IllegalTransition, MailboxFull, RandomStream
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.errors import (
    AuthFailed,
    ConnectionLoss,
    RequestTooLarge,
    SessionClosed,
    SessionExpired,
    ZooKeeperError,
)
from rebalance_lab.world.ports import SESSION_TRANSITIONS, SessionState
from rebalance_lab.world.zk.connect_string import NO_CHROOT
from rebalance_lab.world.zk.messages import Answer, AuthRefused, Connect, Connected, Operation, Request, ToServer
from rebalance_lab.world.zk.server_list import ServerList
from rebalance_lab.world.zk.session import Session

CONNECTING, CONNECTED = SessionState.CONNECTING, SessionState.CONNECTED
EXPIRED, CLOSED = SessionState.EXPIRED, SessionState.CLOSED


class Connection:
    """Keeps what the client sends."""

    accepted = True
    sent_us = 0
    server = "z1"

    def __init__(self) -> None:
        self.sent: list[ToServer] = []
        self.left = False

    def to_server(self, message: ToServer) -> None:
        self.sent.append(message)

    def heard_us(self, now_us: int) -> int:
        return now_us

    def leave_as_client(self) -> None:
        self.left = True


class Transport:
    process = None
    name = "m1"
    request_limit_bytes = 1000

    def __init__(self) -> None:
        self.kernel = Simulation(1).kernel
        self.connections: list[Connection] = []
        self.forgotten: list[object] = []

    def connect(self, session: object, server: object, message: Connect) -> Connection:
        self.connections.append(Connection())
        return self.connections[-1]

    def request_bytes(self, request: Request) -> int:
        return len(request.data)

    def in_requests(self, reads: Any, prefix: str) -> Any:
        return (reads,)

    def forget(self, session: object) -> None:
        self.forgotten.append(session)


class Bench:
    """A session, brought into a state by what its server says."""

    def __init__(self, state: SessionState = CONNECTING) -> None:
        self.transport = Transport()
        server_list = ServerList(("z1",), RandomStream(1, "test", "waits").below)
        self.session: Session[str] = Session(self.transport, server_list, NO_CHROOT, 2000)
        if state is not CONNECTING:
            self.says(Connected(7, 0 if state is EXPIRED else 2000))
        if state is CLOSED:
            self.session.abandon()
        assert self.session.state is state

    @property
    def connection(self) -> Connection:
        return self.transport.connections[-1]

    def says(self, message: Any) -> None:
        self.session.arrived(self.connection, message)

    def closed(self) -> None:
        """The client closes the session, and the server answers."""
        self.session.close()
        (request,) = [each for each in self.connection.sent if isinstance(each, Request)]
        assert request.operation is Operation.CLOSE
        self.says(Answer(request.xid, 9, 0, None))


#: (from, to) -> what leads there.
MOVES = {
    (CONNECTING, CONNECTED): lambda bench: bench.says(Connected(7, 2000)),
    (CONNECTING, EXPIRED): lambda bench: bench.says(Connected(7, 0)),
    (CONNECTING, CLOSED): lambda bench: bench.session.abandon(),
    (CONNECTED, CONNECTING): lambda bench: bench.session.ended(bench.connection),
    (CONNECTED, CLOSED): lambda bench: bench.closed(),
}


@pytest.mark.parametrize(("before", "after"), MOVES)
def test_what_leads_from_one_state_to_another(before: SessionState, after: SessionState) -> None:
    bench = Bench(before)
    MOVES[before, after](bench)
    assert bench.session.state is after
    over = not SESSION_TRANSITIONS[after]
    assert (bench.transport.forgotten == [bench.session]) is over


def test_every_legal_move_is_made() -> None:
    assert set(MOVES) == {(before, after) for before, afters in SESSION_TRANSITIONS.items() for after in afters}


@pytest.mark.parametrize(
    ("before", "after"),
    [(before, after) for before, after in product(SessionState, repeat=2) if after not in SESSION_TRANSITIONS[before]],
)
def test_no_other_move_is_possible(before: SessionState, after: SessionState) -> None:
    bench = Bench(before)
    with pytest.raises(IllegalTransition, match=f"is {before.value}; it cannot become {after.value}"):
        bench.session._change(after)
    assert bench.session.state is before


@pytest.mark.parametrize(
    ("end", "pending", "later"),
    [
        (lambda bench: bench.says(AuthRefused()), AuthFailed, SessionClosed),
        (lambda bench: bench.session.abandon(), ConnectionLoss, SessionClosed),
        (lambda bench: bench.closed(), SessionClosed, SessionClosed),
    ],
)
def test_what_requests_fail_with_at_an_end(
    end: Any, pending: type[ZooKeeperError], later: type[ZooKeeperError]
) -> None:
    bench = Bench(CONNECTED)
    read = bench.session.get("/a", watch=True)
    bench.says(Answer(1, 8, 0, None))
    watch = read.result().watch
    bench.connection.sent.clear()
    waiting = bench.session.get("/b")
    bench.connection.sent.clear()
    end(bench)
    assert type(waiting.error) is pending
    assert watch is not None and type(watch.error) is later
    assert type(bench.session.get("/c").error) is later


def test_an_expired_session_reports_it_before_its_requests_fail() -> None:
    """ClientCnxn queues the event Expired and then fails what is pending (onConnected, SendThread.cleanup)."""
    bench = Bench()
    order: list[str] = []
    waiting = bench.session.get("/a")
    waiting.on(lambda _: order.append("request"))
    bench.session.events.readable().on(lambda _: order.append("event"))
    bench.says(Connected(7, 0))
    assert order == ["event", "request"]
    assert type(waiting.error) is SessionExpired
    assert bench.connection.left


class TestLimits:
    def test_a_read_of_a_path_that_is_too_long_is_refused(self) -> None:
        bench = Bench(CONNECTED)
        bench.transport.request_bytes = lambda request: len(request.path)  # type: ignore[method-assign]
        with pytest.raises(RequestTooLarge, match="get of 5000 bytes"):
            bench.session.get("/" + "x" * 4999).result()
        assert bench.connection.sent == []

    def test_a_session_with_too_many_requests_can_be_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rebalance_lab.world.zk.session.REQUESTS_LIMIT", 1)
        bench = Bench(CONNECTED)
        bench.session.get("/a")
        with pytest.raises(MailboxFull, match="has 1 requests without an answer"):
            bench.session.get("/b")
        bench.session.close()
        assert [each.operation for each in bench.connection.sent if isinstance(each, Request)][-1] is Operation.CLOSE
