"""Logs of real brokers as events. The vectors are logs of 3.9.1, cut down to the lines that matter."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.history.replicas import (
    APPENDED,
    COMMITTED,
    CONTROLS,
    CONTROLS_NO_MORE,
    FOLLOWS,
    ISR_ASSUMED,
    LEADS,
    METADATA_FORGOTTEN,
    METADATA_KNOWN,
    OBEYS,
    REPLICA_ENDED,
    SHUTS_DOWN,
    TRUNCATED,
)
from rebalance_lab.history.writes import REPORTED
from rebalance_lab.roles.real.broker_log_reader import BrokerLogReader
from rebalance_lab.world.kafka.log_file import LogFile, LogLine

VECTORS = Path(__file__).parents[1] / "vectors"
REQUESTS = "data-plane-kafka-request-handler-0"
FETCHER = "ReplicaFetcherThread-0-2"


def log_reader() -> BrokerLogReader:
    return BrokerLogReader("b1", MemorySink(), wall_offset_us=0)


def told(name: str) -> list[Event]:
    reader = log_reader()
    for line in LogFile(VECTORS / f"kafka_broker_{name}.log").poll():
        reader.feed(line)
    return reader.take()


def said(*lines: tuple[str, str], thread: str = REQUESTS) -> list[tuple[Kind, object]]:
    """The events of lines, each a logger and a message."""
    reader = log_reader()
    for at_ms, (logger, message) in enumerate(lines):
        reader.feed(LogLine(at_ms, "INFO", thread, logger, message))
    return [(event.kind, event.detail) for event in reader.take()]


def details(events: list[Event], kind: Kind, *names: str) -> list[object]:
    found = [tuple(event.of(name) for name in names) for event in events if event.kind is kind]
    return [each[0] if len(names) == 1 else each for each in found]


@pytest.mark.parametrize("name", ["killed", "expired", "truncates"])
def test_events_are_numbered_and_time_never_goes_back(name: str) -> None:
    events = told(name)
    assert [event.n for event in events] == list(range(len(events)))
    assert all(event.layer is LAYER_OF[event.kind] for event in events)
    assert all(event.at_us <= after.at_us for event, after in pairwise(events))
    counts = {kind: sum(event.kind is kind for event in events) for kind in Kind}
    assert counts[Kind.INVOKED] == counts[Kind.OK] + counts[Kind.FAILED_OP] > 0
    assert {event.member for event in events} == {"b1"}


def test_a_leader_that_is_killed_and_comes_back_as_a_follower() -> None:
    events = told("killed")
    assert details(events, LEADS, "leader_epoch", "controller_epoch", "isr", "end_offset", "high_watermark") == [
        (0, 1, [1, 2, 3], 0, 0),
        (1, 2, [1, 3], 67, 66),
    ]
    assert details(events, FOLLOWS, "leader", "leader_epoch", "end_offset", "high_watermark") == [(2, 3, 200, 98)]
    assert details(events, ISR_ASSUMED, "isr", "proposed") == [([1, 3], [1, 3, 2])]
    assert details(events, APPENDED, "first", "last") == [(0, 0), (1, 1), (2, 2)]
    assert details(events, COMMITTED, "offset") == [1, 2, 3]
    assert details(events, CONTROLS, "epoch") == [2]
    assert details(events, REPORTED, "event", "broker_epoch", "port") == [
        ("registered", 72, 41847),
        ("registered", 126, 41847),
    ]
    assert [event.session for event in events if event.kind is Kind.CONNECTED] == [
        "0x10002e70dec0002",
        "0x10002e70dec0006",
    ]


def test_each_attempt_to_become_the_controller_has_its_answer() -> None:
    events = told("killed")
    asked = [event for event in events if event.of("parts") is not None]
    assert [event.of("parts") for event in asked] == [[["create", "/controller"], ["set", "/controller_epoch"]]] * 3
    answers = {event.of("of"): event for event in events if event.kind in {Kind.OK, Kind.FAILED_OP}}
    assert [(answers[each.n].kind, answers[each.n].zxid, answers[each.n].cause) for each in asked] == [
        (Kind.FAILED_OP, 76, asked[0].id),
        (Kind.OK, 85, asked[1].id),
        (Kind.FAILED_OP, 133, asked[2].id),
    ]


def test_a_controller_whose_session_ends_resigns() -> None:
    events = told("expired")
    marks = {CONTROLS, CONTROLS_NO_MORE, Kind.DISCONNECTED, Kind.EXPIRED, Kind.CONNECTED}
    assert [event.kind for event in events if event.kind in marks] == [
        Kind.CONNECTED,
        *(CONTROLS, Kind.DISCONNECTED, Kind.EXPIRED, CONTROLS_NO_MORE, Kind.CONNECTED),
        *(CONTROLS, Kind.DISCONNECTED, Kind.EXPIRED, CONTROLS_NO_MORE, Kind.CONNECTED),
        *(CONTROLS, CONTROLS_NO_MORE),
    ]
    assert details(events, CONTROLS, "epoch") == [2, 4, 6]


def test_a_leader_without_an_order_is_an_error() -> None:
    leads = (
        "[Broker id=1] Leader t1-0 with topic id Some(x) starts at leader epoch 3 from offset 0 with partition epoch 0,"
        " high watermark 0, ISR [1], adding replicas [] and removing replicas [] ."
    )
    with pytest.raises(ValueError, match="b1 leads t1-0 in leader epoch 3, and its log has no order for that"):
        said(("logger", leads))


def test_what_a_follower_cuts_off() -> None:
    events = told("truncates")
    names = ("from_offset", "to_offset", "high_watermark", "leader_epoch")
    assert details(events, TRUNCATED, *names) == [(71, 50, 0, 4)]


def test_only_what_clients_send_is_an_append_of_a_leader() -> None:
    line = (
        "UnifiedLog",
        "[UnifiedLog partition=t1-0, dir=/d] Appended message set with last offset: 5, first offset: 4, ",
    )
    assert [kind for kind, _ in said(line)] == [APPENDED]
    assert said(line, thread=FETCHER) == []


MOVED = "[Partition t1-0 broker=1] High watermark updated from (offset={}, segment=[0:0]) to (offset={}, segment=[0:7])"


def test_two_threads_may_log_their_moves_in_the_other_order() -> None:
    """That is no fall of the high watermark, and a fall is one."""
    moves = [("Partition", MOVED.format(*each)) for each in ((3, 4), (5, 6), (4, 5), (6, 7), (7, 2))]
    assert [(detail or {})["offset"] for _, detail in said(*moves)] == [4, 6, 7, 2]  # type: ignore[index]


def test_a_fall_that_nobody_logged_shows_in_the_next_move() -> None:
    """The high watermark was set back between 7 and 2 without a line of its own."""
    moves = [("Partition", MOVED.format(*each)) for each in ((3, 7), (2, 5), (5, 6))]
    assert [(detail or {})["offset"] for _, detail in said(*moves)] == [7, 5, 6]  # type: ignore[index]


def test_of_three_threads_the_last_two_may_be_late() -> None:
    moves = [("Partition", MOVED.format(*each)) for each in ((3, 4), (8, 9), (6, 8), (4, 6), (9, 10))]
    assert [(detail or {})["offset"] for _, detail in said(*moves)] == [4, 9, 10]  # type: ignore[index]


def test_a_replica_that_is_stopped_has_no_role() -> None:
    message = (
        "[Broker id=1] Received StopReplica request StopReplicaPartitionState(partitionIndex=0, leaderEpoch=2, "
        "deletePartition=false) correlation id 4 from controller 3 epoch 2 for partition t1-0"
    )
    assert said(("logger", message)) == [(REPLICA_ENDED, {"role": "stopped"})]


def test_what_the_controller_s_own_thread_says_of_orders_is_none() -> None:
    """Sent orders are logged by the same logger, and name partitions in the same words."""
    sent = (
        "[Controller id=1 epoch=2] Sending become-leader LeaderAndIsr request LeaderAndIsrPartitionState(topicName='t1'"
    )
    assert said(("logger", sent)) == []


def test_a_second_life_begins_without_what_the_first_believed() -> None:
    reader = log_reader()
    for line in LogFile(VECTORS / "kafka_broker_expired.log").poll()[:20]:
        reader.feed(line)
    reader.process_started({"pid": 7}, 10**13)
    reader.feed(LogLine(10**13 + 5, "DEBUG", "kafka-shutdown-hook", "KafkaController", "[Controller id=1] Resigning"))
    started = reader.take()[-1]
    assert (started.kind, started.session, started.detail) == (Kind.PROCESS_STARTED, None, {"pid": 7})


def test_lines_of_a_stack_trace_are_left_out() -> None:
    reader = log_reader()
    reader.feed(
        LogLine(1, "", "main", "KafkaController", "[Controller id=1] 1 successfully elected as the controller.")
    )
    assert reader.take() == []


def test_a_broker_that_asks_to_shut_down() -> None:
    reader = log_reader()
    for message in (
        "shutting down",
        "Starting controlled shutdown",
        "Controlled shutdown request returned successfully",
    ):
        reader.feed(LogLine(1, "INFO", "kafka-shutdown-hook", "KafkaServer", f"[KafkaServer id=1] {message}"))
    assert [event.kind for event in reader.take()] == [SHUTS_DOWN]


def cached(leader: int, epoch: int, isr: str, request: int = 7) -> tuple[str, str]:
    state = (
        f"UpdateMetadataPartitionState(topicName='t1', partitionIndex=0, controllerEpoch=2, leader={leader}, "
        f"leaderEpoch={epoch}, isr=[{isr}], zkVersion=3, replicas=[1, 2, 3], offlineReplicas=[])"
    )
    return told_by(f"Cached leader info {state} for partition t1-0 in response to", request)


def told_by(what: str, request: int = 7) -> tuple[str, str]:
    sent = f"UpdateMetadata request sent by controller 3 epoch 2 with correlation id {request}"
    return "logger", f"[Broker id=1] {what} {sent}"


def order(name: str) -> dict[str, object]:
    return {"order": name, "controller": 3, "controller_epoch": 2, "broker_epoch": -1}


def test_what_a_broker_tells_clients_of_a_partition() -> None:
    known = {"leader": 1, "leader_epoch": 0, "isr": [1, 2]}
    assert said(cached(1, 0, "1, 2"), cached(1, 0, "1, 2", 8), cached(1, 0, "1", 9)) == [
        (OBEYS, order("update-metadata")),
        (METADATA_KNOWN, known),
        (OBEYS, order("update-metadata")),  # nothing new
        (OBEYS, order("update-metadata")),
        (METADATA_KNOWN, {**known, "isr": [1]}),
    ]


def test_a_partition_of_which_it_tells_clients_no_more() -> None:
    deleted = told_by("Deleted partition t1-0 from metadata cache in response to", 8)
    kinds = [kind for kind, _ in said(cached(1, 0, "1"), deleted, deleted)]
    assert kinds == [OBEYS, METADATA_KNOWN, OBEYS, METADATA_FORGOTTEN]


def test_an_order_for_several_partitions_is_one() -> None:
    handling = "[Broker id=1] Handling LeaderAndIsr request correlationId 5 from controller 3 epoch 2 starting the"
    lines = [
        ("logger", f"{handling} become-leader transition for partition t1-0"),
        ("logger", f"{handling} become-follower transition for partition t1-1 with leader 2"),
    ]
    assert said(*lines) == [(OBEYS, order("leader-and-isr"))]
