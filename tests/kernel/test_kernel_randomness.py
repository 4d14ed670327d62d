"""Random streams: uniform, independent, reproducible."""

from __future__ import annotations

from collections import Counter

import pytest

from rebalance_lab.kernel import RandomStream

#: 99.9 % points of chi-square, by degrees of freedom.
CHI_SQUARE_999 = {6: 22.46, 7: 24.32, 23: 49.73, 99: 148.23}


def chi_square(counts: Counter[object], kinds: int, draws: int) -> float:
    expected = draws / kinds
    return sum((count - expected) ** 2 / expected for count in counts.values()) + (kinds - len(counts)) * expected


@pytest.mark.parametrize("limit", [7, 8, 100])
def test_below_is_uniform(limit: int):
    stream = RandomStream(1, "m1", "test")
    counts: Counter[object] = Counter(stream.below(limit) for _ in range(20_000))
    assert set(counts) == set(range(limit))
    assert chi_square(counts, limit, 20_000) < CHI_SQUARE_999[limit - 1]


def test_shuffle_reaches_every_order_alike():
    stream = RandomStream(1, "m1", "shuffle")
    counts: Counter[object] = Counter()
    for _ in range(12_000):
        items = list("abcd")
        stream.shuffle(items)
        counts["".join(items)] += 1
    assert len(counts) == 24
    assert chi_square(counts, 24, 12_000) < CHI_SQUARE_999[23]


def test_below_one_is_zero_and_below_nothing_is_an_error():
    stream = RandomStream(1, "m1", "test")
    assert {stream.below(1) for _ in range(50)} == {0}
    for limit in (0, -3):
        with pytest.raises(ValueError, match=f"no number below {limit}"):
            stream.below(limit)


def test_hex_has_its_width():
    stream = RandomStream(1, "m1", "id")
    texts = [stream.hex(8) for _ in range(500)]
    assert all(len(text) == 8 and set(text) <= set("0123456789abcdef") for text in texts)
    assert any(text[0] == "0" for text in texts), "leading zeros are kept"
    assert len(set(texts)) == 500


def test_bits_fit_their_count():
    stream = RandomStream(1, "m1", "bits")
    draws = [stream.bits(5) for _ in range(500)]
    assert set(draws) == set(range(32))


def test_streams_are_independent_and_reproducible():
    names = [(seed, actor, purpose) for seed in (1, 2) for actor in ("m1", "m2") for purpose in ("id", "backoff")]
    first = {name: RandomStream(*name).hex(16) for name in names}
    assert len(set(first.values())) == len(names)
    drained = RandomStream(1, "m1", "id")
    for _ in range(100):
        drained.bits(64)
    assert {name: RandomStream(*name).hex(16) for name in names} == first


def test_a_stream_is_the_same_for_ever():
    """Golden: a recorded seed must replay in years to come."""
    stream = RandomStream(42, "m1", "id")
    assert [stream.hex(8), stream.below(10), stream.bits(16)] == GOLDEN


GOLDEN = ["93c73d9f", 9, 65035]
