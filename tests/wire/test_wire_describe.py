"""Paths, and what they say to a history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.wire import paths
from rebalance_lab.wire.describe import ZnodeFacts, describe

names = st.text(alphabet="abcXYZ019._-", min_size=1, max_size=12)


def test_paths_of_0_8() -> None:
    assert paths.broker_path(0) == "/brokers/ids/0"
    assert paths.topic_path("orders") == "/brokers/topics/orders"
    assert paths.members_path("g") == "/consumers/g/ids"
    assert paths.member_path("g", "g_c") == "/consumers/g/ids/g_c"
    assert paths.owner_path("g", "t", 3) == "/consumers/g/owners/t/3"
    assert paths.offset_path("g", "t", 3) == "/consumers/g/offsets/t/3"


@pytest.mark.parametrize(
    ("path", "data", "facts"),
    [
        ("/consumers/g/ids/g_h-1-a", b"{}", ZnodeFacts(group="g", member="g_h-1-a")),
        ("/consumers/g/owners/t/3", b"g_h-1-a-0", ZnodeFacts("g", "t", 3, "g_h-1-a")),
        ("/consumers/g/owners/t/3", b"g_h-1-a-11", ZnodeFacts("g", "t", 3, "g_h-1-a")),
        ("/consumers/g/owners/t/3", b"", ZnodeFacts("g", "t", 3)),
        ("/consumers/g/owners/t/x", b"\xff", ZnodeFacts("g", "t")),
        ("/consumers/g/owners/t", b"", ZnodeFacts("g", "t")),
        ("/consumers/g/owners", b"", ZnodeFacts("g")),
        ("/consumers/g/offsets/t/0", b"4711", ZnodeFacts("g", "t", 0)),
        ("/consumers/g/offsets/t", b"", ZnodeFacts("g", "t")),
        ("/consumers/g", b"", ZnodeFacts("g")),
        ("/consumers", b"", ZnodeFacts()),
        ("/brokers/topics/t", b"{}", ZnodeFacts(topic="t")),
        ("/brokers/topics/t/partitions", b"", ZnodeFacts(topic="t")),
        ("/brokers/topics/t/partitions/4/state", b"{}", ZnodeFacts(topic="t", partition=4)),
        ("/brokers/topics", b"", ZnodeFacts()),
        ("/brokers/ids/0", b"{}", ZnodeFacts()),
        ("/", b"", ZnodeFacts()),
        ("", b"", ZnodeFacts()),
        ("/zookeeper/quota", b"", ZnodeFacts()),
    ],
)
def test_what_a_znode_says(path: str, data: bytes, facts: ZnodeFacts) -> None:
    assert describe(path, data) == facts


@given(names, names, st.integers(0, 10**6), names, st.integers(0, 99))
def test_an_owner_is_always_found(group: str, topic: str, partition: int, consumer: str, thread: int) -> None:
    facts = describe(paths.owner_path(group, topic, partition), f"{consumer}-{thread}".encode())
    assert facts == ZnodeFacts(group, topic, partition, consumer)


@given(st.text(), st.binary(max_size=30))
def test_nothing_is_too_odd_to_describe(path: str, data: bytes) -> None:
    assert isinstance(describe(path, data), ZnodeFacts)
