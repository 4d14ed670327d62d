"""What a recorded session writes: pairs, watches, session events, and who caused what."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rebalance_lab.history.events import Event, Kind, Layer, session_text
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.errors import ConnectionLoss, MultiRefused, NoNode, SessionClosed, SessionExpired
from rebalance_lab.world.ports import (
    Check,
    ChildrenRead,
    Create,
    Delete,
    GetRead,
    SessionEventKind,
    SessionState,
    ZooKeeper,
)
from rebalance_lab.world.simulated.world import SimulatedWorld


class Recording:
    """A simulated world, the session of actor m1 in it, and what was recorded."""

    def __init__(self) -> None:
        self.simulation = Simulation(3)
        self.sink = MemorySink()
        self.world = SimulatedWorld(self.simulation, 3, self.sink)
        self.kernel = self.simulation.kernel
        self.process = self.kernel.process("m1")
        self.member: str | None = None
        self.environment = self.world.environment("m1", self.process, member_of=lambda: self.member)

    def events(self, *kinds: Kind) -> list[Event]:
        return [event for event in self.sink.events if not kinds or event.kind in kinds]

    def run(self, main: Callable[[ZooKeeper], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            session = self.environment.zookeeper.open("simulated:2181", 2000)
            assert (await session.events.get()).kind is SessionEventKind.CONNECTED
            await main(session)

        try:
            self.simulation.run(whole())
        finally:
            self.simulation.close()


@pytest.fixture
def recording() -> Recording:
    return Recording()


def test_an_operation_is_a_pair_that_names_its_cause(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        recording.member = "g_host-1"
        await session.create("/a", b"x", ephemeral=True)
        await session.get("/a")

    recording.run(main)
    connected, create, created, get, got = recording.events()
    assert [event.kind for event in recording.events()] == [
        Kind.CONNECTED,
        Kind.INVOKED,
        Kind.OK,
        Kind.INVOKED,
        Kind.OK,
    ]
    assert connected.member is None and connected.cause is None and connected.session is not None
    assert create.detail == {"op": "create", "path": "/a"} and create.cause == connected.id
    assert created.detail == {"op": "create", "path": "/a", "of": create.n} and created.cause == create.id
    assert (created.zxid, created.member, created.session) == (2, "g_host-1", connected.session)
    assert get.cause == created.id and got.cause == get.id and got.zxid == 2
    assert {event.layer for event in recording.events()} == {Layer.OP}


def test_every_operation_is_passed_on_with_its_arguments(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        path = (await session.create("/s-", b"x", sequence=True)).value
        assert path == "/s-0000000000"
        assert (await session.set(path, b"yy", version=0)).value.version == 1
        assert (await session.get(path)).value.data == b"yy"
        stat = (await session.exists(path)).value
        assert stat is not None and stat.data_length == 2
        assert (await session.children("/")).value.names == ("s-0000000000", "zookeeper")
        with pytest.raises(Exception, match="BadVersion"):
            await session.delete(path, version=0)
        await session.delete(path, version=1)
        assert session.negotiated_timeout_ms == 2000

    recording.run(main)
    operations = [event.of("op") for event in recording.events(Kind.INVOKED)]
    assert operations == ["create", "set", "get", "exists", "children", "delete", "delete"]


def test_reads_that_set_a_watch_say_so(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        for watch in (True, False):
            await session.exists("/", watch=watch)
            await session.children("/", watch=watch)
            await session.get("/", watch=watch)

    recording.run(main)
    told = [(event.of("op"), event.of("watch")) for event in recording.events(Kind.INVOKED)]
    ops = ("exists", "children", "get")
    assert told == [*((op, True) for op in ops), *((op, None) for op in ops)]


def test_failures_are_definite_or_unknown(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        with pytest.raises(NoNode):
            await session.delete("/no")
        recording.world.zookeeper.break_connection(session.session_id)
        with pytest.raises(ConnectionLoss):
            await session.create("/a", b"")
        await session.close()
        with pytest.raises(SessionClosed):
            await session.get("/a")

    recording.run(main)
    ends = recording.events(Kind.FAILED_OP, Kind.INFO)
    assert [(event.kind, event.of("error"), event.zxid) for event in ends] == [
        (Kind.FAILED_OP, "NoNode", 2),
        (Kind.INFO, "ConnectionLoss", None),
        (Kind.FAILED_OP, "SessionClosed", None),
    ]
    invoked = [event.n for event in recording.events(Kind.INVOKED) if event.of("op") != "close"]
    assert [event.of("of") for event in ends] == invoked


def test_a_watch_is_recorded_once_and_causes_what_it_wakes(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        await session.create("/a", b"")
        data = (await session.get("/a", watch=True)).watch
        again = (await session.get("/a", watch=True)).watch
        child = (await session.children("/a", watch=True)).watch
        assert data is not None and child is not None
        assert data is again and data is not child
        deleted = session.delete("/a")
        await data
        assert child.done and child.result() is data.result()
        await session.exists("/a")
        assert deleted.done

    recording.run(main)
    (fired,) = recording.events(Kind.WATCH_FIRED)
    assert fired.detail == {"path": "/a", "event": "deleted"}
    assert fired.zxid == 2  # of the last reply before it
    exists = next(event for event in recording.events(Kind.INVOKED) if event.of("op") == "exists")
    assert exists.cause == fired.id


def test_a_watch_that_ends_with_its_session_did_not_fire(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        watch = (await session.exists("/a", watch=True)).watch
        await session.close()
        assert watch is not None
        with pytest.raises(SessionClosed):
            await watch
        assert session.state is SessionState.CLOSED

    recording.run(main)
    assert recording.events(Kind.WATCH_FIRED) == []
    assert [event.of("op") for event in recording.events(Kind.OK)] == ["exists", "close"]


def test_session_events_are_recorded_and_passed_on_in_order(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        recording.world.zookeeper.break_connection(session.session_id)
        kinds = [(await session.events.get()).kind for _ in range(2)]
        assert kinds == [SessionEventKind.DISCONNECTED, SessionEventKind.CONNECTED]
        recording.world.zookeeper.expire(session.session_id)
        kinds = [(await session.events.get()).kind for _ in range(2)]
        assert kinds == [SessionEventKind.DISCONNECTED, SessionEventKind.EXPIRED]
        with pytest.raises(SessionExpired):
            await session.get("/")
        assert session.state is SessionState.EXPIRED

    recording.run(main)
    kinds = (Kind.CONNECTED, Kind.DISCONNECTED, Kind.EXPIRED)
    assert [event.kind for event in recording.events(*kinds)] == [
        Kind.CONNECTED,
        Kind.DISCONNECTED,
        Kind.CONNECTED,
        Kind.DISCONNECTED,
        Kind.EXPIRED,
    ]
    (invoked,) = recording.events(Kind.INVOKED)
    assert invoked.cause == recording.events(Kind.EXPIRED)[0].id
    first = recording.world.zookeeper.transactions[0]
    assert {event.session for event in recording.events(*kinds)} == {session_text(first.session_id)}


def test_nothing_is_recorded_while_the_process_is_paused(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        watch = (await session.exists("/a", watch=True)).watch
        assert watch is not None
        session.create("/a", b"")
        count = len(recording.sink.events)
        recording.process.pause()
        await recording.kernel.sleep(500_000)
        assert len(recording.sink.events) == count
        recording.process.resume()
        assert watch.done

    recording.run(main)
    assert [event.kind for event in recording.events()][-2:] == [Kind.WATCH_FIRED, Kind.OK]


def test_who_learns_of_transactions_learns_first(recording: Recording) -> None:
    seen: list[tuple[int, int]] = []
    recording.world.zookeeper.on_transaction(
        lambda transaction: seen.append((transaction.zxid, len(recording.events(Kind.OK))))
    )

    async def main(session: ZooKeeper) -> None:
        await session.create("/a", b"")
        await session.create("/b", b"")

    recording.run(main)
    assert seen == [(1, 0), (2, 0), (3, 1)]
    assert [each.zxid for each in recording.world.zookeeper.transactions] == [1, 2, 3]


def test_the_environment_is_complete(recording: Recording) -> None:
    environment = recording.environment
    assert (environment.actor, environment.host, environment.seed) == ("m1", "host-m1", 3)
    assert environment.clock.wall_ms() == 1_443_744_000_000
    assert environment.clock.now_us() == 0
    assert environment.random("x").bits(64) == environment.random("x").bits(64)
    assert environment.random("x").bits(64) != environment.random("y").bits(64)


def test_multis_tell_their_parts(recording: Recording) -> None:
    async def main(session: ZooKeeper) -> None:
        await session.multi([Create("/a", b""), Check("/a", 0)])
        await session.multi_read([GetRead("/a"), ChildrenRead("/no")])
        with pytest.raises(MultiRefused):
            await session.multi([Check("/a", 0), Delete("/no")])

    recording.run(main)
    invoked = recording.events(Kind.INVOKED)
    assert [event.detail for event in invoked] == [
        {"op": "multi", "path": "", "parts": [["create", "/a"], ["check", "/a"]]},
        {"op": "multi_read", "path": "", "parts": [["get", "/a"], ["children", "/no"]]},
        {"op": "multi", "path": "", "parts": [["check", "/a"], ["delete", "/no"]]},
    ]
    assert [event.of("op") for event in recording.events(Kind.OK)] == ["multi", "multi_read"]
    (refused,) = recording.events(Kind.FAILED_OP)
    assert refused.detail == {
        "op": "multi",
        "path": "",
        "of": invoked[2].n,
        "error": "MultiRefused",
        "index": 1,
        "reason": "NoNode",
    }
    assert refused.zxid == 3
