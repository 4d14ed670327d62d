"""ZooKeeper's client protocol in bytes: `zk.messages` to frames and back, over the structures of `kazoo.protocol`.

A frame is a length (int32) and that many bytes. Answers are read where they lie in the receive buffer, without cutting
the frame out first, so every reader checks the frame's end.

Kazoo lacks SetWatches (opcode 101) and multi-read (22, ZooKeeper 3.6 and later). A multi and a multi-read are a list of
operations, each behind a header (type, done, error), ended by a header with `done`. In the answer an operation that
failed has type -1 and its code. A multi that was refused has code 0 for those before the first that failed, and
RuntimeInconsistency behind it (DataTree.processTxn); the results of a multi-read are independent of each other
(FinalRequestProcessor).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NoReturn, assert_never

from kazoo.protocol import serialization as wire
from kazoo.security import OPEN_ACL_UNSAFE

from rebalance_lab.world.ports import (
    Check,
    Children,
    Create,
    Delete,
    GetRead,
    Node,
    ReadOperation,
    Set,
    Stat,
    WatchKind,
    WriteOperation,
)
from rebalance_lab.world.zk.messages import Connect, Connected, Fired, Operation, Rearm, Refusal, Request, Value

#: `jute.maxbuffer` as ZooKeeper has it by default: the longest request, without the length of its frame.
REQUEST_LIMIT_BYTES = 0xFFFFF

XID_WATCH_EVENT = -1
XID_PING = -2

#: As jute.maxbuffer of Java's client, before it became 1 MB: ids of large groups must fit.
FRAME_LIMIT_BYTES = 4 * 1024 * 1024

REPLY_HEADER_BYTES: int = wire.reply_header_struct.size
FRAME_LENGTH_BYTES: int = wire.int_struct.size

#: The reads of one request. With Kafka's znodes of some hundred bytes its answer stays well below 1 MB; above 4 KB a
#: znode it may exceed FRAME_LIMIT_BYTES, which breaks the connection.
READS_PER_REQUEST = 1_000

#: The bytes of one request's reads.
READ_REQUEST_LIMIT_BYTES = 128 * 1024

_FLAG_EPHEMERAL = 1
_FLAG_SEQUENCE = 2
_NO_PASSWORD = b"\0" * 16

_unpack_int = wire.int_struct.unpack_from
_unpack_stat = wire.stat_struct.unpack_from
STAT_BYTES: int = wire.stat_struct.size

_request_header = struct.Struct("!iii")
_REQUEST_HEADER_BYTES = 8  # xid and opcode

unpack_length = _unpack_int
unpack_reply_header = wire.reply_header_struct.unpack_from

PING_FRAME = _request_header.pack(_REQUEST_HEADER_BYTES, XID_PING, wire.Ping.type)

_GET_DATA: int = wire.GetData.type
_GET_CHILDREN: int = wire.GetChildren.type
_ERROR = -1

_part_header = wire.multiheader_struct
#: The header of the result of a read, and the length of the znode's data.
_node_header = struct.Struct("!i?ii")
_END: bytes = _part_header.pack(_ERROR, True, -1)
#: The header of one read, and the length of its path.
_read_header = struct.Struct("!i?ii").pack


class ProtocolViolation(Exception):
    """The server sent what no ZooKeeper sends. The connection cannot be trusted any more."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The result of an operation of a multi that was not done. `code`: ZooKeeper's, 0 for one before the failure."""

    code: int


# -- requests -----------------------------------------------------------------------------------


def encode(request: Request, acls: list[Any] = OPEN_ACL_UNSAFE) -> bytes:
    """The frame of a request. `acls`: of the znodes that it creates."""
    body = _body(request, acls)
    opcode = wire.GetChildren2.type if request.operation is Operation.CHILDREN else int(request.operation)
    return _request_header.pack(len(body) + _REQUEST_HEADER_BYTES, request.xid, opcode) + body


def request_bytes(request: Request, acls: list[Any] = OPEN_ACL_UNSAFE) -> int:
    """The length of a request, without the length of its frame."""
    return len(encode(request, acls)) - FRAME_LENGTH_BYTES


def encode_connect(message: Connect) -> bytes:
    """The first frame of a connection; it has no header."""
    password = message.password or _NO_PASSWORD
    body = wire.Connect(0, message.zxid, message.timeout_ms, message.session_id, password, False).serialize()
    return bytes(wire.int_struct.pack(len(body)) + body)


def _body(request: Request, acls: list[Any]) -> bytes:  # noqa: PLR0911
    path = request.path
    match request.operation:
        case Operation.CREATE:
            return _create(path, request.data, request.ephemeral, request.sequence, acls)
        case Operation.GET:
            return bytes(wire.GetData(path, request.watch).serialize())
        case Operation.CHILDREN:
            return bytes(wire.GetChildren2(path, request.watch).serialize())
        case Operation.EXISTS:
            return bytes(wire.Exists(path, request.watch).serialize())
        case Operation.SET:
            return bytes(wire.SetData(path, request.data, request.version).serialize())
        case Operation.DELETE:
            return bytes(wire.Delete(path, request.version).serialize())
        case Operation.MULTI:
            return _parts(_write(each, acls) for each in request.writes)
        case Operation.MULTI_READ:
            return _reads(request.reads)
        case Operation.SET_WATCHES:
            assert request.rearm is not None, "SetWatches without its lists"
            return _set_watches(request.rearm)
        case Operation.CLOSE:
            return b""
        case _:
            assert_never(request.operation)


def _create(path: str, data: bytes, ephemeral: bool, sequence: bool, acls: list[Any]) -> bytes:
    flags = (_FLAG_EPHEMERAL if ephemeral else 0) | (_FLAG_SEQUENCE if sequence else 0)
    return bytes(wire.Create(path, data, acls, flags).serialize())


def _set_watches(rearm: Rearm) -> bytes:
    """The server fires at once those whose znode changed after the zxid."""
    parts = [wire.long_struct.pack(rearm.relative_zxid)]
    for paths in (rearm.data, rearm.exist, rearm.child):
        parts.append(wire.int_struct.pack(len(paths)))
        parts.extend(wire.write_string(path) for path in paths)
    return b"".join(parts)


def _parts(parts: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join([_part_header.pack(kind, False, -1) + part for kind, part in parts]) + _END


def _write(operation: WriteOperation, acls: list[Any]) -> tuple[int, bytes]:
    match operation:
        case Create(path, data, ephemeral, sequence):
            return wire.Create.type, _create(path, data, ephemeral, sequence, acls)
        case Set(path, data, version):
            return wire.SetData.type, wire.SetData(path, data, version).serialize()
        case Delete(path, version):
            return wire.Delete.type, wire.Delete(path, version).serialize()
        case Check(path, version):
            return wire.CheckVersion.type, wire.CheckVersion(path, version).serialize()
        case _:
            assert_never(operation)


def _reads(reads: Sequence[ReadOperation]) -> bytes:
    """Each is a header, a path and whether to watch, which a multi-read cannot ask for."""
    pieces = []
    for each in reads:
        path = each.path.encode()
        pieces.append(_read_header(_GET_DATA if isinstance(each, GetRead) else _GET_CHILDREN, False, -1, len(path)))
        pieces.append(path)
        pieces.append(b"\0")
    pieces.append(_END)
    return b"".join(pieces)


def in_requests(reads: Sequence[ReadOperation], prefix: str = "") -> Iterator[Sequence[ReadOperation]]:
    """The reads in as few requests as their limits allow, in order; at least one request. `prefix`: the chroot."""
    begin = 0
    fixed = _part_header.size + 5 + len(prefix.encode())
    while True:
        part = reads[begin : begin + READS_PER_REQUEST]
        if len("".join([read.path for read in part]).encode()) + fixed * len(part) > READ_REQUEST_LIMIT_BYTES:
            part = part[: _fitting(part, fixed)]
        yield part
        begin += len(part)
        if begin >= len(reads):
            return


def _fitting(reads: Sequence[ReadOperation], fixed: int) -> int:
    """How many of the first reads fit into one request; one read alone always does."""
    sizes = accumulate(len(read.path.encode()) + fixed for read in reads)
    return max(1, sum(size <= READ_REQUEST_LIMIT_BYTES for size in sizes))


# -- answers ------------------------------------------------------------------------------------


def read_connected(buffer: bytes, start: int, end: int) -> Connected:
    """Raises ProtocolViolation."""
    try:
        answer, offset = wire.Connect.deserialize(buffer[start:end], 0)
    except struct.error as error:
        raise ProtocolViolation(f"a connect response of {end - start} bytes: {error}") from error
    if answer.passwd is None or offset > end - start:
        raise ProtocolViolation(f"a connect response of {end - start} bytes that promises more")
    return Connected(answer.session_id, answer.time_out, answer.passwd)


def read_fired(buffer: bytes, offset: int, end: int) -> Fired:
    """A watch event. Raises ProtocolViolation."""
    if end - offset < 12:
        short(offset, end)
    kind, _state = wire.int_int_struct.unpack_from(buffer, offset)
    path = read_text(buffer, offset + 8, end)[0]
    try:
        return Fired(WatchKind(kind), path)
    except ValueError:
        raise ProtocolViolation(f"a watch event of unknown type {kind} for {path}") from None


def read_value(request: Request, buffer: bytes, offset: int, end: int) -> Value:  # noqa: PLR0911
    """The value of an answer without an error code. Raises ProtocolViolation."""
    match request.operation:
        case Operation.CREATE:
            return read_text(buffer, offset, end)[0]
        case Operation.GET:
            return read_node(buffer, offset, end)
        case Operation.EXISTS | Operation.SET:
            return read_stat(buffer, offset, end)
        case Operation.CHILDREN:
            names, offset = read_names(buffer, offset, end)
            return Children(names, read_stat(buffer, offset, end))
        case Operation.MULTI:
            results = _read_results(buffer, offset, end, len(request.writes))
            if Failed in set(map(type, results)):
                return _refusal(results)
            return tuple(results)  # type: ignore[return-value]  # none of them failed
        case Operation.MULTI_READ:
            results = _read_results(buffer, offset, end, len(request.reads))
            if Failed not in set(map(type, results)):
                return tuple(results)  # type: ignore[return-value]  # as above
            return tuple([each.code if isinstance(each, Failed) else each for each in results])  # type: ignore[return-value]
        case _:
            return None


def read_text(buffer: bytes, offset: int, end: int) -> tuple[str, int]:
    """And where the next field begins."""
    if end - offset < 4:
        short(offset, end)
    length = _unpack_int(buffer, offset)[0]
    offset += 4
    if not 0 <= length <= end - offset:
        short(offset, end)
    return _text(buffer[offset : offset + length]), offset + length


def read_node(buffer: bytes, offset: int, end: int) -> Node:
    if end - offset < 4 + STAT_BYTES:
        short(offset, end)
    length = _unpack_int(buffer, offset)[0]
    offset += 4
    data = b""
    if length > 0:  # -1 is null, which Kafka writes into parents
        data = buffer[offset : offset + length]
        offset += length
        if end - offset < STAT_BYTES:
            short(offset, end)
    return Node(data, Stat(*_unpack_stat(buffer, offset)))


def read_stat(buffer: bytes, offset: int, end: int) -> Stat:
    if end - offset < STAT_BYTES:
        short(offset, end)
    return Stat(*_unpack_stat(buffer, offset))


def read_names(buffer: bytes, offset: int, end: int) -> tuple[tuple[str, ...], int]:
    """Sorted, as the lab gives them, and where the next field begins."""
    if end - offset < 4:
        short(offset, end)
    count = _unpack_int(buffer, offset)[0]
    offset += 4
    names = []
    for _ in range(count):
        name, offset = read_text(buffer, offset, end)
        names.append(name)
    names.sort()
    return tuple(names), offset


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"a name that is not UTF-8: {raw[:80]!r}") from error


def short(offset: int, end: int) -> NoReturn:
    raise ProtocolViolation(f"an answer that ends too early: {end - offset} bytes are left where more must follow")


def created_path(body: bytes) -> bytes:
    """The path in the answer to a create, or to a multi that begins with one; empty in other answers."""
    after = _part_header.size + FRAME_LENGTH_BYTES
    if len(body) >= FRAME_LENGTH_BYTES and _unpack_int(body, 0)[0] == len(body) - FRAME_LENGTH_BYTES:
        return body[FRAME_LENGTH_BYTES:]  # only the answer to a create is a text and nothing else
    if len(body) >= after and _part_header.unpack_from(body)[:2] == (wire.Create.type, False):
        return body[after : after + _unpack_int(body, _part_header.size)[0]]
    return b""


# -- the results of many operations --------------------------------------------------------------

Result = str | Stat | Node | tuple[str, ...] | Failed | None


def _read_results(buffer: bytes, offset: int, end: int, count: int) -> list[Result]:
    """Raises ProtocolViolation: cut short, of an unknown type, or not `count` of them."""
    results: list[Result] = []
    last = end - _node_header.size - STAT_BYTES  # a znode's result cannot begin behind it
    while True:
        if offset <= last:  # most results by far are znodes: a controller reads the states of all partitions so
            kind, done, _, length = _node_header.unpack_from(buffer, offset)
            if kind == _GET_DATA and not done:
                begin = offset + _node_header.size
                offset = begin + length if length > 0 else begin
                if end - offset < STAT_BYTES:
                    short(offset, end)
                results.append(Node(buffer[begin:offset], Stat(*_unpack_stat(buffer, offset))))
                offset += STAT_BYTES
                continue
        if end - offset < _part_header.size:
            short(offset, end)
        kind, done, _ = _part_header.unpack_from(buffer, offset)
        offset += _part_header.size
        if done:
            break
        result, offset = _read_result(kind, buffer, offset, end)
        results.append(result)
    if len(results) != count:
        raise ProtocolViolation(f"{len(results)} results for {count} operations in one request")
    return results


def _read_result(kind: int, buffer: bytes, offset: int, end: int) -> tuple[Result, int]:
    """One result, and where the next header begins."""
    if kind == _ERROR:
        if end - offset < FRAME_LENGTH_BYTES:
            short(offset, end)
        return Failed(_unpack_int(buffer, offset)[0]), offset + FRAME_LENGTH_BYTES
    if kind == wire.Create.type:
        return read_text(buffer, offset, end)
    if kind == wire.SetData.type:
        return read_stat(buffer, offset, end), offset + STAT_BYTES
    if kind in (wire.Delete.type, wire.CheckVersion.type):
        return None, offset
    if kind == _GET_CHILDREN:
        return read_names(buffer, offset, end)
    if kind == _GET_DATA:
        short(offset, end)  # `_read_results` has read those that are whole
    raise ProtocolViolation(f"a result of type {kind} in the answer to a multi")


def _refusal(results: Sequence[Result]) -> Refusal:
    """Raises ProtocolViolation when operations failed and none says why."""
    for index, result in enumerate(results):
        if isinstance(result, Failed) and result.code != 0:
            return Refusal(index, result.code)
    raise ProtocolViolation(f"a multi of {len(results)} operations that failed without a reason")
