"""The default partitioner: the hashes of Kafka's own test (`UtilsTest.testMurmur2`, 3.9.1), and what follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.wire.kafka.partitioner import murmur2, partition_for


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hashes_of_kafka_s_test(data: bytes, found: int) -> None:
    assert murmur2(data) == found


def test_the_sign_is_masked_and_not_taken_off() -> None:
    assert partition_for(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7 == 3
    assert 973932308 % 7 == 6


@given(st.binary(max_size=40), st.integers(1, 1000))
def test_each_key_has_one_of_the_partitions(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for(key, partitions) < partitions
    assert -(2**31) <= murmur2(key) < 2**31
