"""Answers that are cut or wrong are violations, never something else."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as wire

from rebalance_lab.world.live import codec
from rebalance_lab.world.live.codec import ProtocolViolation
from rebalance_lab.world.ports import Children, Node, Stat
from rebalance_lab.world.zk.connect_string import NO_CHROOT, Chroot

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
STAT_BYTES = struct.pack("!qqqqiiiqiiq", *range(1, 12))


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("!i", len(raw)) + raw


Case = tuple[codec.Request, bytes, Any]

CASES: dict[str, Case] = {
    "create": (codec.create(NO_CHROOT, "/a", b"", ephemeral=True, sequence=True), text("/a0000000001"), "/a0000000001"),
    "create behind a chroot": (
        codec.create(Chroot("/kafka"), "/a", b"", ephemeral=False, sequence=True),
        text("/kafka/a0000000001"),
        "/a0000000001",
    ),
    "get": (codec.get(NO_CHROOT, "/a", watch=False), text("data") + STAT_BYTES, Node(b"data", STAT)),
    "get null": (codec.get(NO_CHROOT, "/a", watch=False), struct.pack("!i", -1) + STAT_BYTES, Node(b"", STAT)),
    "exists": (codec.exists(NO_CHROOT, "/a", watch=False), STAT_BYTES, STAT),
    "set": (codec.set_data(NO_CHROOT, "/a", b"x", 3), STAT_BYTES, STAT),
    "children": (
        codec.children(NO_CHROOT, "/a", watch=False),
        struct.pack("!i", 3) + text("b") + text("ä") + text("a") + STAT_BYTES,
        Children(("a", "b", "ä"), STAT),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_is_read_where_it_lies(name: str) -> None:
    request, answer, expected = CASES[name]
    before, after = b"before", b"\xff" * 100
    assert request.decode(before + answer + after, 6, 6 + len(answer)) == expected


@pytest.mark.parametrize("name", CASES)
def test_an_answer_cut_anywhere_is_a_violation(name: str) -> None:
    """Also when more frames lie behind it in the buffer."""
    request, answer, _ = CASES[name]
    for cut in range(len(answer)):
        with pytest.raises(ProtocolViolation):
            request.decode(answer[:cut], 0, cut)
        with pytest.raises(ProtocolViolation):
            request.decode(answer, 0, cut)


READERS: list[Callable[[bytes, int, int], Any]] = [
    *(request.decode for request, _, _ in CASES.values()),
    codec.read_welcome,
    codec.read_watch_event,
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
        CASES["create"][0].decode(struct.pack("!i", 2) + b"\xff\xfe", 0, 6)


def test_requests_are_framed_as_kazoo_reads_them() -> None:
    frame = codec.set_data(NO_CHROOT, "/a", b"data", 7).frame(xid=5)
    length, xid, opcode = struct.unpack_from("!iii", frame)
    assert (length, xid, opcode) == (len(frame) - 4, 5, wire.SetData.type)
    assert frame[12:] == wire.SetData("/a", b"data", 7).serialize()


def test_set_watches() -> None:
    frame = codec.set_watches(NO_CHROOT, 9, ["/d"], [], ["/c", "/cc"]).frame(codec.XID_SET_WATCHES)
    expected = struct.pack("!q", 9) + b"\0\0\0\1" + text("/d") + b"\0\0\0\0" + b"\0\0\0\2" + text("/c") + text("/cc")
    assert struct.unpack_from("!iii", frame) == (len(expected) + 8, -8, 101)
    assert frame[12:] == expected


def test_requests_behind_a_chroot() -> None:
    """The wire has the server's path, the request the caller's."""
    chroot = Chroot("/kafka/eu")
    requests = {
        "get": codec.get(chroot, "/a", watch=True),
        "children": codec.children(chroot, "/a", watch=True),
        "exists": codec.exists(chroot, "/a", watch=True),
        "set": codec.set_data(chroot, "/a", b"", -1),
        "delete": codec.delete(chroot, "/a", -1),
        "create": codec.create(chroot, "/a", b"", ephemeral=False, sequence=False),
    }
    for name, request in requests.items():
        assert (name, request.operation, request.path) == (name, name, "/a")
        assert request.body.startswith(text("/kafka/eu/a"))
    watches = codec.set_watches(chroot, 9, ["/"], [], ["/c"]).body
    assert watches[12:] == text("/kafka/eu") + b"\0\0\0\0" + b"\0\0\0\1" + text("/kafka/eu/c")


def test_connect_and_its_answer() -> None:
    frame = codec.connect_frame(5, 6000, -3, b"p" * 16)
    assert struct.unpack_from("!iiqiq", frame) == (len(frame) - 4, 0, 5, 6000, -3)
    answer = struct.pack("!iiq", 0, 6000, -3) + struct.pack("!i", 16) + b"p" * 16
    assert codec.read_welcome(answer, 0, len(answer)) == codec.Welcome(6000, -3, b"p" * 16)
    assert codec.read_welcome(answer + b"\0", 0, len(answer) + 1) == codec.Welcome(6000, -3, b"p" * 16)
