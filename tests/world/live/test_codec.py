"""Answers that are cut or wrong are violations, never something else."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as wire
from kazoo.security import OPEN_ACL_UNSAFE

from rebalance_lab.world.ports import Children, Node, Stat
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.codec import ProtocolViolation
from rebalance_lab.world.zk.messages import SET_WATCHES_XID, Connect, Connected, Operation, Rearm, Request

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
STAT_BYTES = struct.pack("!qqqqiiiqiiq", *range(1, 12))


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("!i", len(raw)) + raw


Case = tuple[Request, bytes, Any]

CASES: dict[str, Case] = {
    "create": (Request(1, Operation.CREATE, "/a"), text("/a0000000001"), "/a0000000001"),
    "get": (Request(1, Operation.GET, "/a"), text("data") + STAT_BYTES, Node(b"data", STAT)),
    "get null": (Request(1, Operation.GET, "/a"), struct.pack("!i", -1) + STAT_BYTES, Node(b"", STAT)),
    "exists": (Request(1, Operation.EXISTS, "/a"), STAT_BYTES, STAT),
    "set": (Request(1, Operation.SET, "/a", data=b"x", version=3), STAT_BYTES, STAT),
    "children": (
        Request(1, Operation.CHILDREN, "/a"),
        struct.pack("!i", 3) + text("b") + text("ä") + text("a") + STAT_BYTES,
        Children(("a", "b", "ä"), STAT),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_read_where_it_lies(name: str) -> None:
    request, answer, expected = CASES[name]
    before, after = b"before", b"\xff" * 100
    assert codec.read_value(request, before + answer + after, 6, 6 + len(answer)) == expected


@pytest.mark.parametrize("name", CASES)
def test_an_answer_cut_anywhere_is_a_violation(name: str) -> None:
    """Also when more frames lie behind it in the buffer."""
    request, answer, _ = CASES[name]
    for cut in range(len(answer)):
        with pytest.raises(ProtocolViolation):
            codec.read_value(request, answer[:cut], 0, cut)
        with pytest.raises(ProtocolViolation):
            codec.read_value(request, answer, 0, cut)


READERS: list[Callable[[bytes, int, int], Any]] = [
    *(partial(codec.read_value, request) for request, _, _ in CASES.values()),
    codec.read_connected,
    codec.read_fired,
]


@given(st.sampled_from(READERS), st.binary(max_size=200))
def test_noise_is_read_or_refused(reader: Callable[[bytes, int, int], Any], noise: bytes) -> None:
    """Nothing but ProtocolViolation leaves a reader, and no count makes it run long."""
    try:
        value = reader(noise, 0, len(noise))
    except ProtocolViolation as violation:
        value = str(violation)
    assert value is not None


def test_a_name_that_is_not_utf8() -> None:
    with pytest.raises(ProtocolViolation, match="not UTF-8"):
        codec.read_value(CASES["create"][0], struct.pack("!i", 2) + b"\xff\xfe", 0, 6)


def test_requests_are_framed_as_kazoo_reads_them() -> None:
    frame = codec.encode(Request(5, Operation.SET, "/a", data=b"data", version=7))
    length, xid, opcode = struct.unpack_from("!iii", frame)
    assert (length, xid, opcode) == (len(frame) - 4, 5, wire.SetData.type)
    assert frame[12:] == wire.SetData("/a", b"data", 7).serialize()


def test_set_watches() -> None:
    rearm = Rearm(9, ("/d",), (), ("/c", "/cc"))
    frame = codec.encode(Request(SET_WATCHES_XID, Operation.SET_WATCHES, "", rearm=rearm))
    expected = struct.pack("!q", 9) + b"\0\0\0\1" + text("/d") + b"\0\0\0\0" + b"\0\0\0\2" + text("/c") + text("/cc")
    assert struct.unpack_from("!iii", frame) == (len(expected) + 8, -8, 101)
    assert frame[12:] == expected


@pytest.mark.parametrize(
    ("operation", "theirs"),
    [
        (Operation.CREATE, wire.Create("/a", b"", OPEN_ACL_UNSAFE, 0)),
        (Operation.GET, wire.GetData("/a", True)),
        (Operation.CHILDREN, wire.GetChildren2("/a", True)),
        (Operation.EXISTS, wire.Exists("/a", True)),
        (Operation.DELETE, wire.Delete("/a", -1)),
    ],
)
def test_each_request_is_framed_as_kazoo_frames_it(operation: Operation, theirs: Any) -> None:
    frame = codec.encode(Request(1, operation, "/a", watch=True))
    assert struct.unpack_from("!iii", frame) == (len(frame) - 4, 1, theirs.type)
    assert frame[12:] == bytes(theirs.serialize())


def test_connect_and_its_answer() -> None:
    frame = codec.encode_connect(Connect(-3, 6000, 5, b"p" * 16))
    assert struct.unpack_from("!iiqiq", frame) == (len(frame) - 4, 0, 5, 6000, -3)
    assert codec.encode_connect(Connect(0, 6000, 0)) == codec.encode_connect(Connect(0, 6000, 0, bytes(16)))
    answer = struct.pack("!iiq", 0, 6000, -3) + struct.pack("!i", 16) + b"p" * 16
    assert codec.read_connected(answer, 0, len(answer)) == Connected(-3, 6000, b"p" * 16)
    assert codec.read_connected(answer + b"\0", 0, len(answer) + 1) == Connected(-3, 6000, b"p" * 16)
