"""Logs of real consumers as events. The vectors are logs of 0.8.2.2, cut down to the lines that tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.intervals import belief_intervals, effect_intervals
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.roles.real.log_reader import LogReader, Setting
from rebalance_lab.world.kafka.log_file import LogFile, LogLine

VECTORS = Path(__file__).parents[1] / "vectors"

OFFSET_US = 1_000_000


def log_reader() -> LogReader:
    setting = Setting("g1", {"rules": "real"}, work_period_ms=50)
    return LogReader(
        "m1", setting, MemorySink(), wall_offset_us=OFFSET_US, members_zxid=lambda _group, reached: reached - 1
    )


def told(name: str) -> list[Event]:
    reader = log_reader()
    for line in LogFile(VECTORS / name).poll():
        reader.feed(line)
    return reader.take()


def of_kind(events: Sequence[Event], *kinds: Kind) -> list[Event]:
    return [event for event in events if event.kind in kinds]


@pytest.mark.parametrize(
    "name", ["console_consumer_conflict.log", "console_consumer_expiry.log", "console_consumer_used_up.log"]
)
def test_events_are_numbered_and_time_never_goes_back(name: str) -> None:
    events = told(name)
    assert [event.n for event in events] == list(range(len(events)))
    assert all(event.layer is LAYER_OF[event.kind] for event in events)
    assert all(event.at_us <= after.at_us for event, after in pairwise(events))
    assert {event.member for event in events} == {events[0].member}
    counts = {kind: len(of_kind(events, kind)) for kind in Kind}
    assert counts[Kind.MEMBER_STARTED] == counts[Kind.MEMBER_CLOSING] == counts[Kind.MEMBER_CLOSED] == 1
    assert counts[Kind.OWNED] == counts[Kind.DISOWNED] > 0
    assert counts[Kind.REBALANCE_BEGAN] == counts[Kind.REBALANCE_ENDED] > 0
    assert counts[Kind.NOTIFICATION_QUEUED] == counts[Kind.NOTIFICATION_HANDLED] > 0
    assert counts[Kind.INVOKED] == counts[Kind.OK] + counts[Kind.FAILED_OP]


def test_the_times_are_the_log_s_on_the_history_s_clock() -> None:
    events = told("console_consumer_conflict.log")
    (started,) = of_kind(events, Kind.MEMBER_STARTED)
    first = LogFile(VECTORS / "console_consumer_conflict.log").poll()[0]
    assert started.at_us == first.wall_ms * 1000 - OFFSET_US
    owned = of_kind(events, Kind.OWNED)[0]
    assert (owned.at_us + OFFSET_US) % 1000 == 999  # belief begins at the end of its millisecond


def test_an_attempt_that_met_others_owners_tells_which_and_why() -> None:
    events = told("console_consumer_conflict.log")
    steps = of_kind(
        events, Kind.REBALANCE_BEGAN, Kind.ATTEMPT_BEGAN, Kind.DECIDED, Kind.ATTEMPT_FAILED, Kind.REBALANCE_ENDED
    )
    assert [event.kind for event in steps[:7]] == [
        Kind.REBALANCE_BEGAN,
        *(Kind.ATTEMPT_BEGAN, Kind.DECIDED, Kind.ATTEMPT_FAILED),
        *(Kind.ATTEMPT_BEGAN, Kind.DECIDED, Kind.REBALANCE_ENDED),
    ]
    wants = [["t1", 5], ["t1", 3], ["t1", 4]]
    assert steps[2].of("members") == 2
    assert steps[2].of("wants") == wants
    assert steps[3].detail == {
        "attempt": 0,
        "why": "owned by others: t1/5, t1/3, t1/4",
        "reason": "conflict",
        "conflicts": wants,
    }
    assert steps[2].of("view") == steps[5].of("view")  # the same members and partitions
    assert steps[6].detail == {"outcome": "ok", "attempts": 2}
    owned = of_kind(events, Kind.OWNED)[:3]
    assert [event.partition for event in owned] == [3, 4, 5]
    assert [event.of("thread") for event in owned] == [f"{events[0].member}-0"] * 3


def test_a_watch_leads_to_a_trigger_and_a_rebalance() -> None:
    events = told("console_consumer_conflict.log")
    began = next(event for event in of_kind(events, Kind.REBALANCE_BEGAN) if event.of("by") == "watcher")
    chain = [began]
    while chain[-1].cause is not None:
        chain.append(events[chain[-1].cause[1]])
    assert [event.kind for event in chain] == [
        Kind.REBALANCE_BEGAN,
        Kind.REBALANCE_TRIGGERED,
        Kind.NOTIFICATION_QUEUED,
    ]
    assert events[chain[-1].n - 1].kind is Kind.WATCH_FIRED


def test_the_order_of_the_start_is_told_by_operations() -> None:
    events = told("console_consumer_expiry.log")
    member = events[0].member
    first = next(event.n for event in events if event.kind is Kind.REBALANCE_BEGAN)
    before = [
        (event.of("op"), event.of("path"))
        for event in of_kind(events[:first], Kind.INVOKED)
        if event.of("watch") or event.of("path") == f"/consumers/g1/ids/{member}"
    ]
    assert before == [
        ("create", f"/consumers/g1/ids/{member}"),
        ("exists", "/consumers/g1/ids"),
        ("children", "/consumers/g1/ids"),
        ("exists", "/brokers/topics/t1"),
    ]


def test_belief_ends_with_the_session_and_effect_with_the_fetchers() -> None:
    events = told("console_consumer_expiry.log")
    expired = next(event for event in events if event.kind is Kind.EXPIRED)
    lost = [event for event in of_kind(events, Kind.DISOWNED) if event.n > expired.n][:2]
    assert [event.partition for event in lost] == [0, 1]
    assert lost[0].at_us - expired.at_us < 5_000
    connected = of_kind(events, Kind.CONNECTED)
    assert connected[0].session == expired.session != connected[1].session
    assert [event.of("by") for event in of_kind(events, Kind.REBALANCE_BEGAN)] == [
        *("create", "watcher", "watcher"),
        *("session", "watcher", "watcher"),
    ]
    assert len(belief_intervals(events)) == len(of_kind(events, Kind.OWNED))
    lasts = [event for event in of_kind(events, Kind.WORKED) if event.of("last") is True]
    assert lasts
    assert {one.partition for one in effect_intervals(events)} == set(range(6))


def lines(*texts: tuple[int, str]) -> list[LogLine]:
    return [LogLine(ms, "INFO", "main", "ZookeeperConsumerConnector", f"[g1_c1], {text}") for ms, text in texts]


def test_a_rebalance_that_used_up_its_retries_ends_where_its_caller_logs_that() -> None:
    """One reason for all: an id that nobody can parse. The watcher, the handler of topics (t2 comes) and
    that of a new session (after a pause) try twice each, with a back-off of 300 ms after each attempt."""
    events = told("console_consumer_used_up.log")
    began, ended = of_kind(events, Kind.REBALANCE_BEGAN), of_kind(events, Kind.REBALANCE_ENDED)
    outcomes = [(first.of("by"), last.of("outcome")) for first, last in zip(began, ended, strict=True)]
    assert outcomes == [
        ("create", "ok"),
        *[("watcher", "failed")] * 3,
        ("topics", "failed"),
        ("session", "failed"),
        ("watcher", "ok"),  # the id is gone
        ("watcher", "shutdown"),  # which waits for both attempts (F10)
    ]
    for end in ended:
        if end.of("outcome") != "ok":
            last = next(event for event in reversed(events[: end.n]) if event.kind is Kind.ATTEMPT_FAILED)
            assert (end.of("attempts"), last.of("attempt")) == (2, 1)
            assert end.at_us - last.at_us >= 300_000
            assert events[end.n + 1].kind is Kind.WARNED  # the same line
    whys = [str(event.of("why")) for event in of_kind(events, Kind.ATTEMPT_FAILED)]
    assert sum("TopicCount : no json" in why for why in whys) == 2 * 5


def test_a_member_whose_first_rebalance_fails_stops_by_itself() -> None:
    reader = log_reader()
    log = LogFile(VECTORS / "console_consumer_stopped.log").poll()
    at = next(number for number, line in enumerate(log) if "stopping consumer" in line.message)
    for line in log[:at]:
        reader.feed(line)
    assert not reader.stopping
    assert reader.take()[-1].kind is Kind.ATTEMPT_FAILED
    for line in log[at:]:
        reader.feed(line)
    assert reader.stopping
    ended, warned, closing, closed = reader.take()
    assert ended.kind is Kind.REBALANCE_ENDED
    assert ended.detail == {"outcome": "failed", "attempts": 2}
    assert warned.of("message") == "Error processing message, stopping consumer: "
    assert (closing.kind, closed.kind) == (Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED)


def error(wall_ms: int, message: str, *, thread: str = "main") -> LogLine:
    return LogLine(wall_ms, "ERROR", thread, "ZookeeperConsumerConnector", f"[g1_c1], {message}")


def test_a_pause_in_the_last_back_off_ends_no_rebalance() -> None:
    reader = log_reader()
    for line in lines(
        (1000, "Connecting to zookeeper instance at here"),
        (2000, "begin rebalancing consumer g1_c1 try #0"),
        (2100, "end rebalancing consumer g1_c1 try #0"),
        (11_100, "Topic info for path /brokers/topics/t1 changed to x, triggering rebalance"),
    ):
        reader.feed(line)
    assert of_kind(reader.take(), Kind.REBALANCE_ENDED) == []
    reader.feed(error(11_150, "error during syncedRebalance", thread="another"))
    assert of_kind(reader.take(), Kind.REBALANCE_ENDED) == []
    reader.feed(error(11_200, "error during syncedRebalance"))
    (ended,) = of_kind(reader.take(), Kind.REBALANCE_ENDED)
    assert ended.detail == {"outcome": "failed", "attempts": 1}
    assert ended.at_us == 11_200_000 - OFFSET_US
    reader.feed(error(11_300, "error during syncedRebalance"))
    assert of_kind(reader.take(), Kind.REBALANCE_ENDED) == []  # once


@pytest.mark.parametrize(
    ("closing", "next_line", "outcome", "before"),
    [
        (False, "begin rebalancing consumer g1_c1 try #0", "failed", Kind.REBALANCE_BEGAN),
        (True, "ZKConsumerConnector shutdown completed in 3 ms", "shutdown", Kind.MEMBER_CLOSED),
    ],
)
def test_who_has_the_lock_next_may_log_first(*, closing: bool, next_line: str, outcome: str, before: Kind) -> None:
    """Between the lock's release and the log of what was thrown another thread may come."""
    reader = log_reader()
    for line in lines(
        (1000, "Connecting to zookeeper instance at here"),
        (2000, "begin rebalancing consumer g1_c1 try #0"),
        (2100, "end rebalancing consumer g1_c1 try #0"),
        *([(2200, "ZKConsumerConnector shutting down")] if closing else []),
    ):
        reader.feed(line)
    reader.take()
    reader.feed(LogLine(2600, "INFO", "another", "ZookeeperConsumerConnector", f"[g1_c1], {next_line}"))
    ended, following = reader.take()[:2]
    assert ended.kind is Kind.REBALANCE_ENDED
    assert ended.of("outcome") == outcome
    assert following.kind is before
    reader.feed(error(2601, "error during syncedRebalance"))
    assert of_kind(reader.take(), Kind.REBALANCE_ENDED) == []


def test_no_brokers_is_a_rebalance_that_succeeds() -> None:
    reader = log_reader()
    for line in lines(
        (1000, "Connecting to zookeeper instance at here"),
        (2000, "begin rebalancing consumer g1_c1 try #0"),
        (2100, "no brokers found when trying to rebalance."),
        (2200, "end rebalancing consumer g1_c1 try #0"),
    ):
        reader.feed(line)
    assert reader.take()[-1].detail == {"outcome": "ok", "attempts": 1}
