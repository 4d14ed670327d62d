"""Bytes from anybody: a message or MalformedMessage, nothing else, in bounded memory."""

from __future__ import annotations

import gc
import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_samples import EDGES, damaged, message_versions, sample

from rebalance_lab.wire.kafka.apis import APIS, ApiKey
from rebalance_lab.wire.kafka.codec import Codec, codec
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion
from rebalance_lab.wire.kafka.frames import decode_request, read_header
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest
from rebalance_lab.wire.kafka.primitives import MOST_ITEMS, uvarint

MESSAGES = list(message_versions())
REQUESTS = [(key, version) for key, api in APIS.items() for version in range(api.versions.last + 1)]


def reads_or_refuses(frame: bytes) -> bool:
    """Whether the frame is a request; raises whatever is not one of the two errors of requests."""
    try:
        decode_request(frame, read_header(frame))
    except (MalformedMessage, UnsupportedVersion):
        return False
    return True


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """A header and arbitrary bytes."""
    key, version = draw(st.sampled_from(REQUESTS))
    pieces = draw(st.lists(st.one_of(st.sampled_from(EDGES), st.binary(max_size=8)), max_size=30))
    return key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"".join(pieces)


@given(frames())
@settings(max_examples=500)
def test_arbitrary_frames_are_read_or_refused(frame: bytes) -> None:
    reads_or_refuses(frame)


@given(st.binary(max_size=64))
@settings(max_examples=200)
def test_arbitrary_bytes_are_read_or_refused(frame: bytes) -> None:
    reads_or_refuses(frame)


@given(st.integers(0, 1 << 32), st.sampled_from(MESSAGES))
@settings(max_examples=200)
def test_a_message_that_is_cut_short_is_refused(seed: int, which: tuple[type, int]) -> None:
    chance = random.Random(seed)
    found: Codec[Any] = codec(*which)
    data = found.encode(sample(*which, chance))
    if not data:
        return
    with pytest.raises(MalformedMessage):
        found.decode(data[: chance.randrange(len(data))])
    with pytest.raises(MalformedMessage, match="1 bytes follow the message"):
        found.decode(data + b"\x00")


def try_damaged(seeds: range) -> int:
    """How many of so many damaged requests could be read."""
    read = 0
    for seed in seeds:
        chance = random.Random(seed)
        key, version = chance.choice(REQUESTS)
        body = codec(APIS[key].request, version).encode(sample(APIS[key].request, version, chance))
        head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
        read += reads_or_refuses(damaged(head + body, chance))
    return read


def test_damaged_requests_are_read_or_refused() -> None:
    assert 0 < try_damaged(range(2_000)) < 2_000


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, 100_000, 20_000))
def test_a_hundred_thousand_damaged_requests_are_read_or_refused(begin: int) -> None:
    assert 0 < try_damaged(range(begin, begin + 20_000)) < 20_000


@pytest.mark.slow
def test_damaged_requests_leave_no_memory_behind() -> None:
    try_damaged(range(2_000))  # compiles the codecs
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        try_damaged(range(10_000))
        most = tracemalloc.get_traced_memory()[1]
        gc.collect()
        now = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert now - before < 1_000_000
    assert most - before < 10_000_000


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_announced_lengths_allocate_nothing(size: int) -> None:
    """Each array says that it has as many items as there are bytes."""
    count = size.to_bytes(4, "big")
    frame = ApiKey.LEADER_AND_ISR.to_bytes(2, "big") + bytes(2 + 4 + 2 + 8) + count * (size // 4)
    reads_or_refuses(frame)  # compiles the codec
    tracemalloc.start()
    try:
        assert not reads_or_refuses(frame)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_the_smallest_items_take_bounded_memory() -> None:
    """Topics of two bytes each, which become objects of a hundred."""
    found = codec(MetadataRequest, 9)
    most = uvarint(MOST_ITEMS + 1) + b"\x01\x00" * MOST_ITEMS + bytes(4)
    more = uvarint(MOST_ITEMS + 2) + b"\x01\x00" * (MOST_ITEMS + 1) + bytes(4)
    tracemalloc.start()
    try:
        assert len(found.decode(most).topics) == MOST_ITEMS
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
        tracemalloc.reset_peak()
        with pytest.raises(MalformedMessage, match=f"more than {MOST_ITEMS} items in one message"):
            found.decode(more)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()
