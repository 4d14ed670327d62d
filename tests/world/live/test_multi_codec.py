"""Multi and multi-read on the wire, against kazoo's structures where it has them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as wire
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from rebalance_lab.world.ports import (
    Check,
    ChildrenRead,
    Create,
    Delete,
    GetRead,
    Node,
    ReadOperation,
    Set,
    Stat,
    WriteOperation,
)
from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.codec import ProtocolViolation
from rebalance_lab.world.zk.messages import Operation, Refusal, Request
from rebalance_lab.world.zk.session import most_bytes

STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
STAT_BYTES = struct.pack("!qqqqiiiqiiq", *range(1, 12))
END = struct.pack("!iBi", -1, 1, -1)

WRITES = (
    Create("/a", b"x", ephemeral=True),
    Create("/s-", b"", sequence=True),
    Set("/b", b"y", 3),
    Delete("/c"),
    Check("/d", 4),
)
READS = (GetRead("/a"), ChildrenRead("/b"), GetRead("/c"))


def multi(*writes: WriteOperation) -> Request:
    return Request(1, Operation.MULTI, "/", writes=writes)


def multi_read(*reads: ReadOperation) -> Request:
    return Request(1, Operation.MULTI_READ, "/", reads=reads)


def framed(request: Request) -> tuple[int, bytes]:
    """Opcode and body."""
    frame = codec.encode(request)
    return struct.unpack_from("!iii", frame)[2], frame[12:]


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("!i", len(raw)) + raw


def result(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!iBi", kind, 0, 0) + body


def failed(code: int) -> bytes:
    return struct.pack("!iBii", -1, 0, code, code)


DONE = result(1, text("/a")) + result(1, text("/s-0000000001")) + result(5, STAT_BYTES) + result(2) + result(13) + END
READ = result(4, text("data") + STAT_BYTES) + result(8, struct.pack("!i", 2) + text("y") + text("x")) + failed(-101)


def test_writes_are_framed_as_kazoo_frames_them() -> None:
    theirs = wire.Transaction(
        [
            wire.Create("/a", b"x", OPEN_ACL_UNSAFE, 1),
            wire.Create("/s-", b"", OPEN_ACL_UNSAFE, 2),
            wire.SetData("/b", b"y", 3),
            wire.Delete("/c", -1),
            wire.CheckVersion("/d", 4),
        ]
    )
    assert framed(multi(*WRITES)) == (14, bytes(theirs.serialize()))


def test_reads_are_framed() -> None:
    parts = [struct.pack("!iBi", kind, 0, -1) + text(path) + b"\0" for kind, path in ((4, "/a"), (8, "/b"), (4, "/c"))]
    assert framed(multi_read(*READS)) == (22, b"".join(parts) + END)


def test_results_are_read_where_they_lie() -> None:
    before, after = b"before", b"\xff" * 100
    for request, answer, expected in (
        (multi(*WRITES), DONE, ("/a", "/s-0000000001", STAT, None, None)),
        (multi_read(*READS), READ + END, (Node(b"data", STAT), ("x", "y"), -101)),
        (multi(), END, ()),
        (multi_read(), END, ()),
    ):
        assert codec.read_value(request, before + answer + after, 6, 6 + len(answer)) == expected


def test_null_data_and_no_children() -> None:
    answer = result(4, struct.pack("!i", -1) + STAT_BYTES) + result(8, struct.pack("!i", 0)) + END
    decoded = codec.read_value(multi_read(*READS[:2]), answer, 0, len(answer))
    assert decoded == (Node(b"", STAT), ())


def test_a_refusal_names_the_first_that_failed() -> None:
    """Code 0 before it, RuntimeInconsistency (-2) behind it, as DataTree answers."""
    answer = failed(0) + failed(0) + failed(-103) + failed(-2) + failed(-2) + END
    refused = codec.read_value(multi(*WRITES), answer, 0, len(answer))
    assert refused == Refusal(2, -103)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failed(0) * 5 + END, "failed without a reason"),
        (DONE[: -len(END)] + result(13) + END, "6 results for 5 operations"),
        (result(13) * 4 + END, "4 results for 5 operations"),
        (result(99) * 5 + END, "a result of type 99"),
        (DONE[: -len(END)], "ends too early"),
    ],
)
def test_answers_that_no_server_gives(answer: bytes, why: str) -> None:
    with pytest.raises(ProtocolViolation, match=why):
        codec.read_value(multi(*WRITES), answer, 0, len(answer))


def test_an_answer_cut_anywhere_is_a_violation() -> None:
    cases: list[tuple[Any, bytes]] = [
        (multi(*WRITES), DONE),
        (multi_read(*READS), READ + END),
    ]
    for request, answer in cases:
        for cut in range(len(answer)):
            with pytest.raises(ProtocolViolation):
                codec.read_value(request, answer, 0, cut)


@given(st.sampled_from([multi(*WRITES), multi_read(*READS)]), st.binary(max_size=200))
def test_noise_is_refused_or_read(request_: Any, noise: bytes) -> None:
    try:
        value = codec.read_value(request_, noise, 0, len(noise))
    except ProtocolViolation as violation:
        value = str(violation)
    assert value is not None


# -- how many requests reads take --------------------------------------------------------------


@given(st.lists(st.integers(1, 40_000), max_size=30))
def test_requests_hold_every_read_once_and_stay_below_the_limit(lengths: list[int]) -> None:
    reads = [GetRead("/" + "x" * length) for length in lengths]
    requests = list(codec.in_requests(reads))
    assert [read for each in requests for read in each] == reads
    sizes = [len(framed(multi_read(*each))[1]) - len(END) for each in requests]
    assert all(size <= codec.READ_REQUEST_LIMIT_BYTES for size in sizes)
    for size, following in zip(sizes, requests[1:], strict=False):
        assert size + len(framed(multi_read(*following[:1]))[1]) - len(END) > codec.READ_REQUEST_LIMIT_BYTES


def test_the_chroot_counts_in_a_request_of_reads() -> None:
    reads, chroot = [GetRead("/" + "x" * 1000)] * 900, "/" + "c" * 4000
    requests = list(codec.in_requests(reads, chroot))
    assert [read for each in requests for read in each] == reads
    for each in requests:
        at_server = [GetRead(chroot + read.path) for read in each]
        assert len(framed(multi_read(*at_server))[1]) - len(END) <= codec.READ_REQUEST_LIMIT_BYTES


@pytest.mark.parametrize(("count", "expected"), [(0, [0]), (1, [1]), (1000, [1000]), (2001, [1000, 1000, 1])])
def test_requests_have_a_thousand_reads_at_most(count: int, expected: list[int]) -> None:
    requests = codec.in_requests([GetRead("/a")] * count)
    assert [len(each) for each in requests] == expected


def test_the_bound_of_a_session_is_never_below_the_length_of_a_request() -> None:
    path, data, acls = "/é\uffef" * 9, b"xy", CREATOR_ALL_ACL + READ_ACL_UNSAFE
    writes = (Create(path, data, ephemeral=True), Set(path, data), Delete(path), Check(path, 1))
    for request in (
        Request(1, Operation.CREATE, path, data=data),
        Request(1, Operation.SET, path, data=data),
        Request(1, Operation.DELETE, path),
        Request(1, Operation.EXISTS, path, True),
        Request(1, Operation.MULTI, path, writes=writes * 9),
        Request(1, Operation.MULTI, path),
    ):
        assert most_bytes(request) >= codec.request_bytes(request, acls)
