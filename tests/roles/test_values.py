"""The values of clients: each is told from all others, and damage shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.roles.values import told, told_of, value_of
from rebalance_lab.wire.kafka.records import Record

NUMBERS = st.integers(0, 10**6)
SIZES = st.integers(8, 300)


@given(NUMBERS, SIZES)
def test_a_value_is_as_long_as_asked_and_tells_its_number(number: int, size: int) -> None:
    value = value_of(number, size)
    assert len(value) == size
    assert told(value) == number
    assert told_of(Record(None, value)) == number


@given(st.integers(0, 10**5), SIZES, st.data())
def test_any_byte_that_differs_shows(number: int, size: int, data: st.DataObject) -> None:
    value = bytearray(value_of(number, size))
    at = data.draw(st.integers(0, size - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    assert told(bytes(value)) != number


@given(st.integers(0, 10**5), st.integers(16, 300), st.data())
def test_a_value_that_was_cut_off_shows(number: int, size: int, data: st.DataObject) -> None:
    assert isinstance(told(value_of(number, size)[: data.draw(st.integers(8, size - 1))]), str)


@pytest.mark.parametrize("value", [None, b"", b"1", b"1 ", b"x", b"+1 aaaaaa", b"1\n234567", b"\xff" * 20])
def test_what_no_client_writes_is_told_in_words(value: bytes | None) -> None:
    assert isinstance(told(value), str)


def test_different_values_have_different_words() -> None:
    assert told(b"a" * 100) != told(b"a" * 99 + b"b")
    assert told(None) != told(b"")


def test_a_record_with_a_key_or_headers_is_none_of_a_client_s() -> None:
    value = value_of(7, 32)
    assert isinstance(told_of(Record(b"k", value)), str)
    assert isinstance(told_of(Record(None, value, headers=(("h", b"1"),))), str)
