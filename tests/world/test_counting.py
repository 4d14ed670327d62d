"""What a session writes whose operations are counted: OPERATIONS now and then, and who caused what."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.errors import ConnectionLoss, NoNode, SessionExpired
from rebalance_lab.world.ports import Create, GetRead, SessionEventKind, SessionState, ZooKeeper
from rebalance_lab.world.simulated.world import SimulatedWorld


class Counting:
    """A simulated world that counts, the session of actor m1 in it, and what was recorded."""

    def __init__(self) -> None:
        self.simulation = Simulation(3)
        self.sink = MemorySink()
        self.world = SimulatedWorld(self.simulation, 3, self.sink, operations="counts")
        self.kernel = self.simulation.kernel
        self.process = self.kernel.process("m1")
        self.environment = self.world.environment("m1", self.process, member_of=lambda: "g_1")

    def counted(self) -> list[Event]:
        return [event for event in self.sink.events if event.kind is Kind.OPERATIONS]

    def run(self, main: Callable[[ZooKeeper], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            session = self.environment.zookeeper.open("simulated:2181", 2000)
            assert (await session.events.get()).kind is SessionEventKind.CONNECTED
            await main(session)

        async def hosted() -> None:
            await self.kernel.start_root(whole(), "main", process=self.process)

        try:
            self.simulation.run(hosted())
        finally:
            self.simulation.close()


@pytest.fixture
def counting() -> Counting:
    return Counting()


def test_operations_are_counted_by_kind_and_told_a_tenth_of_a_second_after_the_first(counting: Counting) -> None:
    began_us = 0

    async def main(session: ZooKeeper) -> None:
        nonlocal began_us
        began_us = counting.kernel.now_us()
        await session.create("/a", b"")
        await session.multi([Create("/b", b""), Create("/c", b"")])
        await session.multi_read([GetRead("/a"), GetRead("/b"), GetRead("/c")])
        await session.set("/a", b"1")
        for _ in range(3):
            await session.get("/a")
        await session.children("/")
        await session.exists("/no")
        await session.delete("/c")
        with pytest.raises(NoNode):
            await session.delete("/c")
        await counting.kernel.sleep(200_000)
        await session.get("/a")
        await counting.kernel.sleep(200_000)

    counting.run(main)
    assert [event.kind for event in counting.sink.events] == [Kind.CONNECTED, Kind.OPERATIONS, Kind.OPERATIONS]
    first, second = counting.counted()
    assert first.detail == {
        "since_us": began_us,
        "counts": {
            "get": 3,
            "children": 1,
            "exists": 1,
            "create": 1,
            "set": 1,
            "delete": 2,
            "multi": 1,
            "multi_read": 1,
            "reads": 3,
        },
        "failed": 1,
        "unknown": 0,
    }
    assert first.at_us == began_us + 100_000 and first.member == "g_1" and first.session is not None
    assert second.of("counts") == {"get": 1} and second.of("failed") == 0


def test_counts_that_wait_are_told_before_the_close(counting: Counting) -> None:
    async def main(session: ZooKeeper) -> None:
        await session.get("/")
        await session.close()

    counting.run(main)
    kinds = [event.kind for event in counting.sink.events]
    assert kinds == [Kind.CONNECTED, Kind.OPERATIONS, Kind.INVOKED, Kind.OK]
    assert counting.counted()[0].of("counts") == {"get": 1}
    assert counting.sink.events[-1].of("op") == "close"


def test_what_the_close_fails_is_told_with_it_and_nothing_later(counting: Counting) -> None:
    """The record of a member ends with it, while others of its process live on: a count told a tenth of
    a second later ended all of them."""
    asked = 0

    async def main(session: ZooKeeper) -> None:
        nonlocal asked
        counting.world.zookeeper.break_connection(session.session_id)
        while session.state is SessionState.CONNECTED:
            await counting.kernel.sleep(100)
        waiting = [session.get("/") for _ in range(3)]
        asked = len(waiting)
        closed = session.close()
        await closed
        session.get("/")  # nobody sends this
        told = len(counting.sink.events)
        assert all(each.done for each in waiting)
        await counting.kernel.sleep(500_000)
        assert len(counting.sink.events) == told

    counting.run(main)
    told = [(event.of("failed"), event.of("unknown")) for event in counting.counted()]
    assert asked == sum(count for pair in told for count in pair if isinstance(count, int))


def test_lost_and_expired_operations_are_told_apart(counting: Counting) -> None:
    async def main(session: ZooKeeper) -> None:
        counting.world.zookeeper.break_connection(session.session_id)
        with pytest.raises(ConnectionLoss):
            await session.create("/a", b"")
        await session.get("/")
        counting.world.zookeeper.expire(session.session_id)
        while (await session.events.get()).kind is not SessionEventKind.EXPIRED:
            pass
        with pytest.raises(SessionExpired):
            await session.get("/")
        await counting.kernel.sleep(200_000)

    counting.run(main)
    told = [(event.of("failed"), event.of("unknown")) for event in counting.counted()]
    assert sum(failed for failed, _ in told if isinstance(failed, int)) == 1
    assert sum(unknown for _, unknown in told if isinstance(unknown, int)) == 1


def test_counts_that_wait_are_told_before_the_expiry(counting: Counting) -> None:
    asked = 0

    async def main(session: ZooKeeper) -> None:
        nonlocal asked
        counting.world.zookeeper.expire(session.session_id)
        while session.state is not SessionState.EXPIRED:
            session.get("/")
            asked += 1
            await counting.kernel.sleep(30_000)
        await counting.kernel.sleep(200_000)

    counting.run(main)
    kinds = [event.kind for event in counting.sink.events]
    expired = kinds.index(Kind.EXPIRED)
    assert kinds[expired - 1] is Kind.OPERATIONS
    after = [event for event in counting.sink.events[expired:] if event.kind is Kind.OPERATIONS]
    assert [event.of("counts") for event in after] == [{}]  # what still waited failed with the session
    told = [event.of("failed") for event in counting.counted()] + [event.of("unknown") for event in counting.counted()]
    assert sum(count for count in told if isinstance(count, int)) == asked


def test_a_watch_is_recorded_and_its_cause_outlives_answers_that_are_not(counting: Counting) -> None:
    async def main(session: ZooKeeper) -> None:
        watch = (await session.exists("/a", watch=True)).watch
        again = (await session.exists("/a", watch=True)).watch
        assert watch is not None and watch is again
        session.create("/a", b"")
        await watch
        for _ in range(3):
            await session.get("/a")
        await session.children("/", watch=True)
        await session.close()

    counting.run(main)
    fired = next(event for event in counting.sink.events if event.kind is Kind.WATCH_FIRED)
    assert fired.detail == {"path": "/a", "event": "created"}
    closing = next(event for event in counting.sink.events if event.kind is Kind.INVOKED)
    assert closing.cause == fired.id  # four answers later


def test_a_killed_process_counts_no_more(counting: Counting) -> None:
    async def main() -> None:
        session = counting.environment.zookeeper.open("simulated:2181", 2000)
        await session.events.get()
        await session.get("/")
        await counting.kernel.sleep(1_000_000)

    async def killed() -> None:
        counting.kernel.start_root(main(), "main", process=counting.process)
        await counting.kernel.sleep(50_000)
        counting.process.kill()
        await counting.kernel.sleep(1_000_000)

    counting.simulation.run(killed())
    counting.simulation.close()
    assert counting.counted() == []


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="operations='some': record all of them, or counts"):
        SimulatedWorld(Simulation(1), 1, MemorySink(), operations="some").environment(
            "m1", Simulation(1).kernel.process("m1")
        )
