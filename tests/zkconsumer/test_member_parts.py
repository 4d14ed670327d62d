"""The member's parts, alone: the watcher's coalescing, the fetchers' lease, belief."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

import pytest

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink, Recorder
from rebalance_lab.kernel import Kernel
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.payloads import Broker
from zkconsumer.fetchers import Fetchers, LeaderFinder, LeaseSettings
from zkconsumer.ownership import Ownership
from zkconsumer.report import Report
from zkconsumer.watcher import Watcher

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)

Story = Callable[[Kernel, Report], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Story], list[Event]]:
    """Run a story of one part; its events."""

    def run(story: Story) -> list[Event]:
        simulation = Simulation(1)
        sink = MemorySink()
        report = Report(Recorder("m1", simulation.kernel, sink), member="g_m1", group="g")

        async def main() -> None:
            await story(simulation.kernel, report)

        simulation.run(main())
        simulation.close()
        return sink.events

    return run


def test_triggers_during_a_rebalance_make_exactly_one_more(play: Callable[[Story], list[Event]]) -> None:
    began: list[int] = []

    async def story(tasks: Kernel, report: Report) -> None:
        watcher = Watcher(tasks, report, name="m1")
        closing = tasks.flag("closing")

        async def rebalance() -> None:
            began.append(tasks.now_us())
            await tasks.sleep(300_000)

        async with tasks.scope("watcher") as scope:
            scope.spawn(watcher.run(rebalance, lambda: closing.raised), "watcher")
            await tasks.sleep(1000)
            await watcher.handle_child_change("/ids", ())
            await tasks.sleep(100_000)
            for _ in range(3):
                await watcher.handle_child_change("/ids", ())
            await tasks.sleep(5_000_000)
            closing.raise_()

    events = play(story)
    assert began == [1000, 301_000]
    coalesced = [event.of("coalesced") for event in events if event.kind is Kind.REBALANCE_TRIGGERED]
    assert coalesced == [False, False, True, True]


def test_a_failing_rebalance_is_logged_and_the_watcher_goes_on(play: Callable[[Story], list[Event]]) -> None:
    async def story(tasks: Kernel, report: Report) -> None:
        watcher = Watcher(tasks, report, name="m1")
        rounds: list[int] = []

        async def rebalance() -> None:
            rounds.append(len(rounds))
            raise RuntimeError(f"round {len(rounds)}")

        async with tasks.scope("watcher") as scope:
            scope.spawn(watcher.run(rebalance, lambda: len(rounds) == 2), "watcher")
            for _ in range(2):
                await watcher.handle_data_change("/brokers/topics/t", b"")
                await tasks.sleep(10)

    warned = [event.of("message") for event in play(story) if event.kind is Kind.WARNED]
    assert warned == ["error during syncedRebalance: round 1", "error during syncedRebalance: round 2"]


def lease_reports(play: Callable[[Story], list[Event]], lease: LeaseSettings) -> list[tuple[object, ...]]:
    """(time, topic, partition) of the work of fetchers that run from 7 ms to 127 ms."""

    async def story(tasks: Kernel, report: Report) -> None:
        async with tasks.scope("fetchers") as scope:
            fetchers = Fetchers(tasks, scope, report, name="m1", lease=lease)
            await tasks.sleep(7000)
            fetchers.start([U0, T1])
            await tasks.sleep(120_000)
            await fetchers.stop()
            await tasks.sleep(500_000)

    return [(event.at_us, event.topic, event.partition) for event in play(story)]


def test_the_lease_reports_at_once_each_period_and_at_the_stop(play: Callable[[Story], list[Event]]) -> None:
    reports = lease_reports(play, LeaseSettings(work_period_ms=50))
    assert reports == [(at_us, *each) for at_us in (7000, 57_000, 107_000, 127_000) for each in (T1, U0)]


def test_fetchers_that_are_slow_to_stop_work_until_they_have_stopped(play: Callable[[Story], list[Event]]) -> None:
    reports = lease_reports(play, LeaseSettings(work_period_ms=50, stop_ms=40))
    assert reports == [(at_us, *each) for at_us in (7000, 57_000, 107_000, 157_000, 167_000) for each in (T1, U0)]


@pytest.mark.parametrize(("period_ms", "stop_ms"), [(0, 0), (50, -1)])
def test_an_impossible_lease_is_refused(period_ms: int, stop_ms: int) -> None:
    with pytest.raises(ValueError, match="work_period_ms must be at least 1 and stop_ms at least 0"):
        LeaseSettings(work_period_ms=period_ms, stop_ms=stop_ms)


def test_a_lease_on_nothing_costs_nothing(play: Callable[[Story], list[Event]]) -> None:
    async def story(tasks: Kernel, report: Report) -> None:
        async with tasks.scope("fetchers") as scope:
            fetchers = Fetchers(tasks, scope, report, name="m1", lease=LeaseSettings())
            fetchers.start([])
            steps = tasks.steps
            await tasks.sleep(1_000_000)
            assert tasks.steps == steps + 1
            await fetchers.stop()

    assert play(story) == []


def test_the_leader_finder_tries_until_there_are_brokers(play: Callable[[Story], list[Event]]) -> None:
    found_us: list[int] = []

    class View:
        answers: ClassVar = [KafkaException("bad broker"), (), (Broker(0, "h", 9092),)]

        async def brokers(self) -> tuple[Broker, ...]:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    async def story(tasks: Kernel, report: Report) -> None:
        await LeaderFinder(tasks, View(), report, backoff_ms=200).find((T0, U0))  # type: ignore[arg-type]
        found_us.append(tasks.now_us())

    (warned,) = play(story)
    assert warned.of("message") == "Failed to find leader for Set([t,0], [u,0]): bad broker"
    assert found_us == [400_000]


def test_belief_ends_once_and_before_the_entries_go(play: Callable[[Story], list[Event]]) -> None:
    async def story(tasks: Kernel, report: Report) -> None:
        ownership = Ownership(report)
        ownership.swap([(T0, "c-0"), (T1, "c-0"), (U0, "c-0")], {T0: -1, T1: 5, U0: -1})
        ownership.disbelieve()
        assert ownership.topics == ("t", "u")
        assert ownership.of("t") == (T0, T1)
        ownership.forget("t")
        assert ownership.topics == ("u",)
        ownership.clear()
        assert (ownership.topics, ownership.of("u")) == ((), ())

    events = play(story)
    owned, disowned = ([e for e in events if e.kind is kind] for kind in (Kind.OWNED, Kind.DISOWNED))
    assert [(e.topic, e.partition, e.of("offset")) for e in owned] == [("t", 0, -1), ("t", 1, 5), ("u", 0, -1)]
    assert [(e.topic, e.partition) for e in disowned] == [T0, T1, U0]
    assert {(e.member, e.group) for e in events} == {("g_m1", "g")}
