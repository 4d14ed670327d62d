"""From transactions to registry events, and the planted bug of the recorder."""

from __future__ import annotations

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, merge
from rebalance_lab.history.transactions import (
    ImpossibleTransaction,
    PathFacts,
    RegistryTracker,
    Transaction,
    TransactionKind,
)

OFFSET_US = 1_000_000_000_000  # wall clock minus the history's


def describe(path: str, data: bytes) -> PathFacts:
    """As `wire` does, for the paths of these tests."""
    match path.split("/"):
        case ["", "consumers", group, "ids", member]:
            return PathFacts(group=group, member=member)
        case ["", "consumers", group, "owners", topic, partition]:
            owner = data.decode("utf-8", "replace").rpartition("-")[0] or None
            return PathFacts(group, topic, int(partition), owner)
    return PathFacts()


ID = "/consumers/g/ids/g_m1"
OWNER = "/consumers/g/owners/t/0"


def opened(zxid: int, session: int) -> Transaction:
    return Transaction(zxid, session, 0, 1_000_000_000 + zxid, TransactionKind.SESSION_OPENED, timeout_ms=2000)


def closed(zxid: int, session: int, *removed: str) -> Transaction:
    """A session's end with the log's list of what went."""
    wall_ms = 1_000_000_000 + zxid
    return Transaction(zxid, session, 0, wall_ms, TransactionKind.SESSION_CLOSED, removed=removed)


def closed_unlisted(zxid: int, session: int) -> Transaction:
    """The same in a log that does not list what went."""
    return Transaction(zxid, session, 0, 1_000_000_000 + zxid, TransactionKind.SESSION_CLOSED)


def created(zxid: int, session: int, path: str, data: bytes = b"", *, ephemeral: bool = True) -> Transaction:
    wall_ms = 1_000_000_000 + zxid
    return Transaction(zxid, session, 5, wall_ms, TransactionKind.CREATE, path, data, ephemeral=ephemeral)


def deleted(zxid: int, session: int, path: str) -> Transaction:
    return Transaction(zxid, session, 6, 1_000_000_000 + zxid, TransactionKind.DELETE, path)


def changed(zxid: int, session: int, path: str, data: bytes) -> Transaction:
    return Transaction(zxid, session, 7, 1_000_000_000 + zxid, TransactionKind.SET, path, data, version=1)


def feed(*transactions: Transaction, plant: str | None = None) -> list[Event]:
    tracker = RegistryTracker(wall_offset_us=OFFSET_US, describe=describe, plant=plant)
    return [event for transaction in transactions for event in tracker.feed(transaction)]


def short(events: list[Event]) -> list[tuple[Kind, int | None, object, str | None]]:
    return [(event.kind, event.zxid, event.of("path"), event.member) for event in events]


def test_a_create_says_who_owns_what() -> None:
    [event] = feed(created(3, 0x1A, OWNER, b"g_m1-0"))
    assert event == Event(
        actor="zookeeper",
        n=0,
        at_us=3_000,
        layer=Layer.REGISTRY,
        kind=Kind.CREATED,
        member="g_m1",
        session="0x1a",
        group="g",
        topic="t",
        partition=0,
        zxid=3,
        detail={"cxid": 5, "path": OWNER, "data": "g_m1-0", "ephemeral": True},
    )


def test_a_session_s_opening_and_a_refused_write_are_told() -> None:
    refused = Transaction(2, 0x1, 9, 1_000_000_002, TransactionKind.ERROR, code=-110)
    checked = Transaction(3, 0x1, 10, 1_000_000_003, TransactionKind.CHECK, OWNER)
    first, second = feed(opened(1, 0x1), refused, checked)
    assert (first.kind, first.session, first.detail) == (
        Kind.SESSION_OPENED,
        "0x1",
        {"cxid": 0, "timeout_ms": 2000},
    )
    assert (second.kind, second.zxid, second.detail) == (Kind.FAILED, 2, {"cxid": 9, "code": -110})


def test_an_event_counts_the_transactions_before_it_that_yield_none() -> None:
    """Of a multi with a check and a create, both with zxid 4, the create is the event."""

    def nothing(zxid: int, kind: TransactionKind = TransactionKind.OTHER) -> Transaction:
        return Transaction(zxid, 0x9, 1, 1_000_000_000 + zxid, kind)

    events = feed(
        opened(1, 0x1),
        nothing(2),
        nothing(3),
        nothing(3),
        nothing(4, TransactionKind.CHECK),
        created(4, 0x1, OWNER, b"g_m1-0"),
        deleted(5, 0x1, OWNER),
    )
    assert [(event.zxid, event.of("passed")) for event in events] == [(1, None), (4, 2), (5, None)]


OTHER_OWNER = "/consumers/g/owners/t/1"

#: Session 0x1 has an id and partition 1, 0x2 has partition 0; one znode of 0x1 is persistent.
HOLDINGS = (
    created(1, 0x1, OTHER_OWNER, b"g_m1-0"),
    created(2, 0x2, OWNER, b"g_m2-0"),
    created(3, 0x1, ID),
    created(4, 0x1, "/consumers/g/ids/persistent", ephemeral=False),
)


def test_a_closed_session_takes_what_the_log_lists_in_its_order_with_its_zxid() -> None:
    events = feed(*HOLDINGS, closed(5, 0x1, OTHER_OWNER, ID))
    assert short(events[4:]) == [
        (Kind.SESSION_CLOSED, 5, None, None),
        (Kind.DELETED, 5, OTHER_OWNER, "g_m1"),
        (Kind.DELETED, 5, ID, "g_m1"),
    ]
    assert events[4].detail == {"cxid": 0, "ephemerals": 2, "sampled": False}
    assert [event.detail for event in events[5:]] == [
        {"cxid": 0, "path": path, "with_session": True} for path in (OTHER_OWNER, ID)
    ]
    assert all(event.session == "0x1" for event in events[4:])
    assert [event.n for event in events] == list(range(7))


@pytest.mark.parametrize("listed", [(), (ID,), (OTHER_OWNER,)])
def test_what_the_log_does_not_list_stays(listed: tuple[str, ...]) -> None:
    """It is not gone at a second end of the session either, nor does it go twice."""
    events = feed(*HOLDINGS, closed(5, 0x1, *listed), closed_unlisted(6, 0x1))
    gone = [event for event in events if event.kind is Kind.DELETED]
    assert [event.of("path") for event in gone if event.zxid == 5] == list(listed)
    assert [event.of("path") for event in gone if event.zxid == 6] == sorted({ID, OTHER_OWNER} - set(listed))


def test_a_log_that_lists_what_another_session_made_or_nobody_did_is_believed() -> None:
    events = feed(*HOLDINGS, closed(5, 0x1, OWNER, "/consumers/g/ids/older"))
    assert [(event.of("path"), event.of("owner"), event.member) for event in events[5:]] == [
        (OWNER, "0x2", "g_m2"),
        ("/consumers/g/ids/older", None, "older"),
    ]


def test_without_a_list_what_goes_is_inferred_and_marked() -> None:
    events = feed(*HOLDINGS, closed_unlisted(5, 0x1))
    assert short(events[4:]) == [
        (Kind.SESSION_CLOSED, 5, None, None),
        (Kind.DELETED, 5, ID, "g_m1"),
        (Kind.DELETED, 5, OTHER_OWNER, "g_m1"),
    ]
    assert events[4].detail == {"cxid": 0, "ephemerals": 2, "sampled": True}
    assert [event.detail for event in events[5:]] == [
        {"cxid": 0, "path": path, "with_session": True, "sampled": True} for path in (ID, OTHER_OWNER)
    ]


def test_what_was_released_before_does_not_go_twice() -> None:
    events = feed(created(1, 0x1, OWNER, b"g_m1-0"), deleted(2, 0x1, OWNER), closed_unlisted(3, 0x1))
    assert short(events[1:]) == [(Kind.DELETED, 2, OWNER, "g_m1"), (Kind.SESSION_CLOSED, 3, None, None)]
    assert events[1].of("owner") is None


def test_a_deletion_of_another_session_s_znode_names_its_owner() -> None:
    events = feed(created(1, 0x1, OWNER, b"g_m1-0"), deleted(2, 0x2, OWNER))
    assert (events[1].session, events[1].of("owner")) == ("0x2", "0x1")


def test_a_deletion_of_what_was_there_before_is_told_by_its_path() -> None:
    [event] = feed(deleted(2, 0x1, OWNER))
    assert (event.topic, event.partition, event.member) == ("t", 0, None)


def test_a_change_keeps_the_znode_with_its_session() -> None:
    events = feed(created(1, 0x1, OWNER, b"g_m1-0"), changed(2, 0x2, OWNER, b"g_m2-0"), closed(3, 0x1, OWNER))
    assert short(events[1:]) == [
        (Kind.CHANGED, 2, OWNER, "g_m2"),
        (Kind.SESSION_CLOSED, 3, None, None),
        (Kind.DELETED, 3, OWNER, "g_m2"),
    ]


def test_a_multi_may_repeat_its_zxid_but_none_may_go_back() -> None:
    assert len(feed(created(2, 0x1, ID), created(2, 0x1, OWNER, b"g_m1-0"))) == 2
    with pytest.raises(ImpossibleTransaction, match="zxid 0x1 after 0x2"):
        feed(created(2, 0x1, ID), created(1, 0x1, OWNER))


#: m1 releases its partition and m2 claims it.
HAND_OVER = (
    created(1, 0x1, ID),
    created(2, 0x1, OWNER, b"g_m1-0"),
    deleted(3, 0x1, OWNER),
    created(4, 0x2, OWNER, b"g_m2-0"),
)


def _history(*transactions: Transaction, plant: str | None = None) -> History:
    story = Story()
    for number in (1, 2):
        story.started(0, f"m{number}")
        story.add(0, f"m{number}", Kind.CONNECTED, session=f"0x{number}")
        story.closed(8, f"m{number}")
    story.rest(9)
    history = story.history()
    return History(history.trial, merge([*history.events, *feed(*transactions, plant=plant)]))


def test_a_recorder_that_loses_releases_is_caught() -> None:
    check = CHECKS["registry_overlap"]
    assert check.judge(_history(*HAND_OVER)).outcome is Outcome.CLEAN
    finding = check.judge(_history(*HAND_OVER, plant="recorder-loses-releases"))
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), ("zookeeper", 3)))


def test_a_recorder_that_loses_a_dead_session_s_owners_is_caught() -> None:
    transactions = (*HAND_OVER[:2], closed(3, 0x1, ID, OWNER), HAND_OVER[3])
    assert CHECKS["registration"].judge(_history(*transactions)).outcome is Outcome.CLEAN
    history = _history(*transactions, plant="recorder-loses-releases")
    assert CHECKS["registry_overlap"].judge(history).outcome is Outcome.VIOLATED
    finding = CHECKS["registration"].judge(history)
    assert finding.why == f"{OWNER} outlived its session 0x1, which closed at zxid 0x3"
    assert finding.outcome is Outcome.VIOLATED
