"""Which watches an event fires, and how a session lists them for a new server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import SessionExpired
from rebalance_lab.world.ports import WatchEvent, WatchKind
from rebalance_lab.world.zk.watches import SET_WATCHES_LIMIT_BYTES, ClientWatches

#: Each table with the arguments of `add` that lead to it, in the order of a batch.
TABLES: dict[str, dict[str, bool]] = {"data": {}, "exist": {"missing": True}, "child": {"children": True}}


def watching(path: str = "/a") -> tuple[ClientWatches, dict[str, Future[WatchEvent]]]:
    """A watch of `path` in each table."""
    watches = ClientWatches("m1")
    return watches, {table: watches.add(path, **how) for table, how in TABLES.items()}


def test_each_read_has_its_table() -> None:
    watches, futures = watching()
    assert {table: getattr(watches, table) for table in TABLES} == {
        table: {"/a": future} for table, future in futures.items()
    }


@pytest.mark.parametrize(
    ("kind", "fired"),
    [
        (WatchKind.CREATED, {"data", "exist"}),
        (WatchKind.CHANGED, {"data", "exist"}),
        (WatchKind.DELETED, {"data", "exist", "child"}),
        (WatchKind.CHILD, {"child"}),
    ],
)
def test_an_event_fires_its_tables_on_its_path_once(kind: WatchKind, fired: set[str]) -> None:
    """As Java's ZKWatchManager.materialize."""
    watches, here = watching("/a")
    elsewhere = [watches.add("/a/b", **how) for how in TABLES.values()]
    event = WatchEvent(kind, "/a", 7)
    watches.fire(event)
    assert {table for table, future in here.items() if future.done} == fired
    assert all(here[table].result() is event for table in fired)
    assert not any(future.done for future in elsewhere)
    assert len(watches) == 6 - len(fired)
    assert not watches.add("/a").done
    watches.fire(WatchEvent(kind, "/unknown", 8))


def test_one_future_serves_all() -> None:
    watches = ClientWatches("m1")
    assert watches.add("/a") is watches.add("/a")
    assert watches.add("/a") is not watches.add("/a", children=True)


def test_the_end_of_a_session_fails_all() -> None:
    watches, futures = watching()
    watches.fail(SessionExpired, 0x10)
    assert [type(future.error) for future in futures.values()] == [SessionExpired] * 3
    assert not watches
    assert list(watches.batches()) == []


@given(
    st.dictionaries(st.integers(0, 10**9), st.tuples(st.sampled_from([*TABLES]), st.integers(1, 40_000)), max_size=30)
)
def test_batches_hold_every_watch_once_and_stay_below_the_limit(numbered: dict[int, tuple[str, int]]) -> None:
    watches = ClientWatches("m1")
    expected = [(table, f"/{number}-" + "ü" * length) for number, (table, length) in numbered.items()]
    for table, path in expected:
        watches.add(path, **TABLES[table])
    batches = list(watches.batches())
    sizes = [sum(len(path.encode()) + 4 for paths in batch for path in paths) for batch in batches]
    for size, batch in zip(sizes, batches, strict=True):
        assert size <= SET_WATCHES_LIMIT_BYTES or sum(map(len, batch)) == 1
    for size, following in zip(sizes, batches[1:], strict=False):
        first = next(path for paths in following for path in paths)
        assert size + len(first.encode()) + 4 > SET_WATCHES_LIMIT_BYTES  # no batch was closed early
    sent = [(table, path) for batch in batches for table, paths in zip(TABLES, batch, strict=True) for path in paths]
    assert sorted(sent) == sorted(expected)
