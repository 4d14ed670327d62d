"""Which watch an event fires, and how watches are told to a new server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.world.errors import SessionExpired
from rebalance_lab.world.live.watches import SET_WATCHES_LIMIT_BYTES, WatchClass, WatchTable
from rebalance_lab.world.ports import WatchEvent, WatchKind


@pytest.mark.parametrize(
    ("kind", "fired"),
    [
        (WatchKind.CREATED, {WatchClass.DATA, WatchClass.EXISTS}),
        (WatchKind.CHANGED, {WatchClass.DATA, WatchClass.EXISTS}),
        (WatchKind.DELETED, {WatchClass.DATA, WatchClass.EXISTS, WatchClass.CHILDREN}),
        (WatchKind.CHILD, {WatchClass.CHILDREN}),
    ],
)
def test_an_event_fires_its_classes_on_its_path_once(kind: WatchKind, fired: set[WatchClass]) -> None:
    """As Java's ZKWatchManager.materialize."""
    table = WatchTable()
    here = {which: table.add(which, "/a") for which in WatchClass}
    elsewhere = [table.add(which, "/a/b") for which in WatchClass]
    event = WatchEvent(kind, "/a", 7)
    table.fire(event)
    assert {which for which, future in here.items() if future.done} == fired
    assert all(here[which].result() is event for which in fired)
    assert not any(future.done for future in elsewhere)
    assert len(table) == 6 - len(fired)
    assert not table.add(WatchClass.DATA, "/a").done
    table.fire(WatchEvent(kind, "/unknown", 8))


def test_one_future_serves_all() -> None:
    table = WatchTable()
    assert table.add(WatchClass.DATA, "/a") is table.add(WatchClass.DATA, "/a")
    assert table.add(WatchClass.DATA, "/a") is not table.add(WatchClass.CHILDREN, "/a")


def test_the_end_of_a_session_fails_all() -> None:
    table = WatchTable()
    futures = [table.add(which, "/a") for which in WatchClass]
    table.fail(SessionExpired, 0x10)
    assert [type(future.error) for future in futures] == [SessionExpired] * 3
    assert len(table) == 0
    assert list(table.batches()) == []


@given(
    st.dictionaries(st.integers(0, 10**9), st.tuples(st.sampled_from(WatchClass), st.integers(1, 40_000)), max_size=30)
)
def test_batches_hold_every_watch_once_and_stay_below_the_limit(
    watches: dict[int, tuple[WatchClass, int]],
) -> None:
    table = WatchTable()
    for number, (which, length) in watches.items():
        table.add(which, f"/{number}-" + "ü" * length)
    batches = list(table.batches())
    sizes = [sum(len(path.encode()) + 4 for paths in batch for path in paths) for batch in batches]
    for size, batch in zip(sizes, batches, strict=True):
        assert size <= SET_WATCHES_LIMIT_BYTES or sum(map(len, batch)) == 1
    for size, following in zip(sizes, batches[1:], strict=False):
        first = next(path for paths in following for path in paths)
        assert size + len(first.encode()) + 4 > SET_WATCHES_LIMIT_BYTES  # no batch was closed early
    sent = [
        (which, path)
        for batch in batches
        for which, paths in zip((WatchClass.DATA, WatchClass.EXISTS, WatchClass.CHILDREN), batch, strict=True)
        for path in paths
    ]
    expected = [(which, f"/{number}-" + "ü" * length) for number, (which, length) in watches.items()]
    assert sorted(sent, key=str) == sorted(expected, key=str)
