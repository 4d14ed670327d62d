"""Logs of real consumers as events. The vectors are logs of 0.8.2.2, cut down to the lines that tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.intervals import belief_intervals, effect_intervals
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.hosts.real.story import Setting, Story
from rebalance_lab.world.kafka.log_file import LogFile, LogLine

VECTORS = Path(__file__).parents[1] / "vectors"

BACKOFF_MS = 500
OFFSET_US = 1_000_000


def story(retries: int = 10) -> Story:
    setting = Setting("g1", {"rules": "real"}, retries, BACKOFF_MS, work_period_ms=50)
    return Story(
        "m1", setting, MemorySink(), wall_offset_us=OFFSET_US, members_zxid=lambda _group, reached: reached - 1
    )


def told(name: str) -> list[Event]:
    teller = story()
    for line in LogFile(VECTORS / name).poll():
        teller.feed(line)
    return teller.take()


def of_kind(events: Sequence[Event], *kinds: Kind) -> list[Event]:
    return [event for event in events if event.kind in kinds]


@pytest.mark.parametrize("name", ["console_consumer_conflict.log", "console_consumer_expiry.log"])
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


def test_a_rebalance_that_used_up_its_retries_ends_one_back_off_later() -> None:
    teller = story(retries=1)
    texts = lines(
        (1000, "Connecting to zookeeper instance at here"),
        (2000, "begin rebalancing consumer g1_c1 try #0"),
        (2100, "exception during rebalance "),
    )
    more = LogLine(
        2100, "", "main", "ZookeeperConsumerConnector", "java.lang.IllegalArgumentException: requirement failed"
    )
    for line in [*texts, more, *lines((2200, "end rebalancing consumer g1_c1 try #0"))]:
        teller.feed(line)
    failed = teller.take()[-1]
    assert failed.kind is Kind.ATTEMPT_FAILED
    assert failed.of("reason") == "error"
    assert failed.of("why") == "java.lang.IllegalArgumentException: requirement failed"
    teller.pass_time(2200 + BACKOFF_MS - 1)
    assert teller.take() == []
    teller.pass_time(2200 + BACKOFF_MS + 30)
    (ended,) = teller.take()
    assert ended.detail == {"outcome": "failed", "attempts": 1}
    assert ended.at_us == (2200 + BACKOFF_MS) * 1000 - OFFSET_US


def test_no_brokers_is_a_rebalance_that_succeeds() -> None:
    teller = story()
    for line in lines(
        (1000, "Connecting to zookeeper instance at here"),
        (2000, "begin rebalancing consumer g1_c1 try #0"),
        (2100, "no brokers found when trying to rebalance."),
        (2200, "end rebalancing consumer g1_c1 try #0"),
    ):
        teller.feed(line)
    assert teller.take()[-1].detail == {"outcome": "ok", "attempts": 1}
