"""The indexes of a segment."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.broker.log.indexes import NO_TIMESTAMP, OffsetIndex, TimeIndex

BASE = 1000


def offset_index(*entries: tuple[int, int]) -> OffsetIndex:
    index = OffsetIndex(BASE)
    for offset, position in entries:
        index.add(offset, position)
    return index


def time_index(*entries: tuple[int, int]) -> TimeIndex:
    index = TimeIndex(BASE)
    for timestamp, offset in entries:
        index.add(timestamp, offset)
    return index


def test_the_bytes_are_kafkas():
    assert offset_index((1003, 4200), (1010, 9000)).data.hex() == "00000003000010680000000a00002328"
    assert time_index((258, 1003)).data.hex() == "000000000000010200000003"


def test_an_offset_is_looked_for_between_two_entries():
    index = offset_index((1003, 4200), (1010, 9000))
    assert [index.around(offset) for offset in (1000, 1002, 1003, 1009, 1010, 2000)] == [
        (0, 4200),
        (0, 4200),
        (4200, 9000),
        (4200, 9000),
        (9000, None),
        (9000, None),
    ]
    assert OffsetIndex(BASE).around(1000) == (0, None)


@given(st.lists(st.integers(0, 500), unique=True).map(sorted), st.integers(0, 501))
def test_a_look_up_finds_the_entry_before(relatives, asked):
    index = offset_index(*((BASE + relative, n + 1) for n, relative in enumerate(relatives)))
    assert index.around(BASE + asked)[0] == bisect_right(relatives, asked)


@given(st.lists(st.integers(0, 500), unique=True).map(sorted), st.integers(0, 501))
def test_a_truncation_drops_the_offset_and_all_after_it(relatives, target):
    index = offset_index(*((BASE + relative, n) for n, relative in enumerate(relatives)))
    index.truncate_to(BASE + target)
    kept = [relative for relative in relatives if relative < target]
    assert index.data == offset_index(*((BASE + relative, n) for n, relative in enumerate(kept))).data


def test_a_truncated_index_is_stale_in_its_file():
    index = OffsetIndex(BASE, bytes(offset_index((1003, 1), (1010, 2)).data))
    assert (index.written, index.stale) == (16, False)
    index.truncate_to(1011)
    assert (index.written, index.stale) == (16, False)
    index.truncate_to(1010)
    assert (index.written, index.stale) == (8, True)


def test_a_time_index_takes_only_larger_timestamps():
    index = time_index((50, 1001), (50, 1004), (40, 1006), (60, 1007))
    assert index.last == (60, 1007)
    assert len(index) == 2


def test_a_time_is_looked_up_at_the_entry_before():
    index = time_index((50, 1001), (60, 1007))
    assert [index.lookup(timestamp) for timestamp in (-1, 49, 50, 59, 60, 1000)] == [1000, 1000, 1001, 1001, 1007, 1007]
    assert TimeIndex(BASE).last == (NO_TIMESTAMP, BASE)


def test_a_time_index_is_truncated_by_offset():
    index = time_index((50, 1001), (60, 1007), (70, 1009))
    index.truncate_to(1007)
    assert index.last == (50, 1001)


def test_a_full_index_leaves_the_time_index_one_place():
    assert not offset_index((1001, 1)).full(16)
    assert offset_index((1001, 1), (1002, 2)).full(23)
    assert time_index((1, 1001)).full(24)
    assert not time_index((1, 1001)).full(36)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", None),
        (offset_index((1003, 1), (1010, 9)).data, None),
        (offset_index((1003, 1)).data + b"\0", "1 bytes follow"),
        (offset_index((1003, 1), (1003, 9)).data, "do not increase"),
        (offset_index((1003, 9), (1004, 9)).data, "do not increase"),
        (offset_index((999, 1)).data, "negative"),
        (offset_index((1003, 10)).data, "byte 10 of 10"),
        (bytes(32), "do not increase"),
    ],
)
def test_a_wrong_offset_index_is_noticed(data, problem):
    found = OffsetIndex(BASE, data).problem(10)
    assert found is None if problem is None else problem in found


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (time_index((5, 1001), (6, 1002)).data, None),
        (time_index((5, 1001)).data + b"\0\0", "2 bytes follow"),
        (time_index((5, 1001)).data * 2, "do not increase"),
        (time_index((5, 1002), (6, 1001)).data, "do not increase"),
        (time_index((5, 999)).data, "negative"),
    ],
)
def test_a_wrong_time_index_is_noticed(data, problem):
    found = TimeIndex(BASE, data).problem()
    assert found is None if problem is None else problem in found
