"""The first event in which two histories differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.history.compare import Difference, first_difference
from rebalance_lab.history.events import Event, Kind, Layer, decode, encode


def event(n: int, at_us: int = 0) -> Event:
    return Event(actor="m1", n=n, at_us=at_us, layer=Layer.OP, kind=Kind.WARNED, detail={"message": f"number {n}"})


def events(count: int) -> list[Event]:
    return [event(n) for n in range(count)]


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 30])
def test_the_same_history_has_no_difference(count: int) -> None:
    assert first_difference(events(count), events(count)) is None


@given(st.integers(1, 60), st.data())
def test_one_changed_event_is_found_wherever_it_is(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    changed = events(count)
    changed[index] = event(index, at_us=7)
    assert first_difference(events(count), changed) == Difference(index, event(index), changed[index])


@given(st.integers(0, 40), st.integers(1, 40))
def test_a_history_that_ends_first_differs_there(shared: int, more: int) -> None:
    longer = events(shared + more)
    assert first_difference(events(shared), longer) == Difference(shared, None, event(shared))
    assert first_difference(longer, events(shared)) == Difference(shared, event(shared), None)


def test_later_differences_do_not_matter() -> None:
    changed = [event(n, at_us=int(n >= 12)) for n in range(50)]
    found = first_difference(events(50), changed)
    assert found is not None
    assert (found.index, found.fields) == (12, ("at_us",))


def test_events_are_compared_as_their_files_hold_them() -> None:
    ours = Event(actor="m1", n=0, at_us=0, layer=Layer.OP, kind=Kind.WARNED, detail={"wants": [("t", 1)]})
    assert first_difference([ours], [decode(encode(ours))]) is None


def test_the_fields_that_differ_are_named() -> None:
    left = event(1)
    right = Event(actor="m2", n=1, at_us=3, layer=Layer.OP, kind=Kind.WARNED, detail=left.detail)
    assert Difference(0, left, right).fields == ("actor", "at_us")
    assert Difference(0, left, None).fields == ()
