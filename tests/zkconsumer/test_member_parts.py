"""The member's parts, alone: the watcher's coalescing, the fetchers' lease, belief."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

import pytest

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import MemorySink, Recorder
from rebalance_lab.kernel import Kernel, Scope
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.payloads import Broker
from zkconsumer.errors import IllegalArgumentException
from zkconsumer.fetchers import Fetchers, FetcherSettings, LeaderFinder, LeaseSettings, Share
from zkconsumer.identifiers import fetcher_id
from zkconsumer.ownership import Ownership
from zkconsumer.report import Report
from zkconsumer.streams import Streams
from zkconsumer.subscription import Static, WhiteList
from zkconsumer.watcher import Watcher

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)

LEASE = LeaseSettings(work_period_ms=50)

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


class Found:
    """A leader finder whose work is done."""

    async def find(self, partitions: Sequence[TopicPartition]) -> None:
        return


def fetchers_of(
    tasks: Kernel,
    scope: Scope,
    report: Report,
    *,
    lease: LeaseSettings = LEASE,
    fetchers: int = 1,
    queue_limit: int = 2,
) -> Fetchers:
    settings = FetcherSettings("g_m1", lease, fetchers, queue_limit)
    return Fetchers(tasks, scope, report, settings, Found())  # type: ignore[arg-type]


def lease_reports(play: Callable[[Story], list[Event]], lease: LeaseSettings) -> list[tuple[object, ...]]:
    """(time, topic, partition) of the work of fetchers that run from 7 ms to 127 ms."""

    async def story(tasks: Kernel, report: Report) -> None:
        async with tasks.scope("fetchers") as scope:
            fetchers = fetchers_of(tasks, scope, report, lease=lease)
            fetchers.streams_returned()
            await tasks.sleep(7000)
            fetchers.start([Share(U0), Share(T1)])
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
            fetchers = fetchers_of(tasks, scope, report)
            fetchers.start([])
            steps = tasks.steps
            await tasks.sleep(1_000_000)
            assert tasks.steps == steps + 1
            await fetchers.stop()

    assert play(story) == []


def test_a_partition_without_a_queue_kills_its_fetcher_and_all_that_share_it(
    play: Callable[[Story], list[Event]],
) -> None:
    shares = [Share(T0, 0), Share(T1, None), Share(TopicPartition("t", 2), 0), Share(U0, 0)]
    assert [fetcher_id(each.partition, 2) for each in shares] == [0, 1, 0, 1]

    async def story(tasks: Kernel, report: Report) -> None:
        async with tasks.scope("fetchers") as scope:
            fetchers = fetchers_of(tasks, scope, report, fetchers=2)
            fetchers.streams_returned()
            fetchers.start(shares)
            await tasks.sleep(60_000)
            await fetchers.stop()
            fetchers.start([Share(U0, 0)])  # the next rebalance starts anew
            await tasks.sleep(10_000)
            await fetchers.stop()

    events = play(story)
    worked = [(e.topic, e.partition) for e in events if e.kind is Kind.WORKED]
    assert worked == [("t", 0), ("t", 2)] * 3 + [("u", 0)] * 2
    (warned,) = [e.of("message") for e in events if e.kind is Kind.WARNED]
    assert warned == (
        "[ConsumerFetcherThread-g_m1-1], Error due to: error processing data for partition [t,1]: it has no queue"
    )


def test_queues_that_nobody_reads_take_so_many_chunks_and_no_more(play: Callable[[Story], list[Event]]) -> None:
    async def story(tasks: Kernel, report: Report) -> None:
        async with tasks.scope("fetchers") as scope:
            fetchers = fetchers_of(tasks, scope, report, queue_limit=3)
            fetchers.start([Share(T0, 0), Share(T1, 1)])
            await tasks.sleep(1_010_000)
            fetchers.streams_returned()
            await tasks.sleep(50_000)
            await fetchers.stop()

    worked = [(e.at_us, e.partition) for e in play(story)]
    assert worked[:6] == [(at_us, partition) for at_us in (0, 50_000, 100_000) for partition in (0, 1)]
    assert [at_us for at_us, _ in worked[6:]] == [1_050_000] * 2 + [1_060_000] * 2  # read again, and the stop


def test_fetcher_ids_are_kafkas() -> None:
    assert [fetcher_id(TopicPartition("orders", each), 4) for each in range(5)] == [1, 0, 3, 2, 1]  # by Java
    assert fetcher_id(TopicPartition("orders", 0), 1) == 0


def test_names_have_a_queue_for_each_topic_and_thread_filters_share_theirs() -> None:
    named, filtered = Streams(Static({"t": 2, "u": 1})), Streams(WhiteList(".*", 2))
    threads = {"t": ("c-0", "c-1"), "u": ("c-0",)}
    named.put(threads)
    assert [named.queue(*pair) for pair in (("t", "c-0"), ("t", "c-1"), ("u", "c-0"), ("u", "c-1"))] == [0, 1, 2, None]
    filtered.put({"t": ("c-0", "c-1"), "u": ("c-0", "c-1")})
    filtered.put({"v": ("c-0", "c-1")})
    assert [filtered.queue(topic, "c-1") for topic in "tuv"] == [1, 1, 1]
    assert filtered.topics == ("t", "u", "v")  # those that are gone stay


def test_threads_and_queues_must_match() -> None:
    with pytest.raises(IllegalArgumentException) as raised:
        Streams(WhiteList("t", 2)).put({"t": ("c-0",)})
    assert str(raised.value) == "requirement failed: Mismatch between thread ID count (1) and queue count (2)"


def test_the_leader_finder_tries_until_there_are_brokers(play: Callable[[Story], list[Event]]) -> None:
    found_us: list[int] = []

    class View:
        answers: ClassVar[list[Any]] = [KafkaException("bad broker"), (), (Broker(0, "h", 9092),)]

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
