"""ZooKeeper's client protocol: frames, over the structures of `kazoo.protocol.serialization`.

A frame is a length (int32) and that many bytes. Answers are read where they lie in the
receive buffer, without cutting the frame out first, so every reader checks the frame's end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from kazoo.protocol import serialization as wire
from kazoo.security import OPEN_ACL_UNSAFE

from rebalance_lab.kernel import Future
from rebalance_lab.world.ports import Children, Node, Reply, Stat
from rebalance_lab.world.zk.connect_string import Chroot

XID_WATCH_EVENT = -1
XID_PING = -2
XID_SET_WATCHES = -8
XID_LIMIT = 0x7FFFFFFF

#: As jute.maxbuffer of Java's client, before it became 1 MB: ids of large groups must fit.
FRAME_LIMIT_BYTES = 4 * 1024 * 1024

#: The longest request a server takes (jute.maxbuffer, where it was not set).
REQUEST_LIMIT_BYTES = 0xFFFFF

REPLY_HEADER_BYTES: int = wire.reply_header_struct.size
FRAME_LENGTH_BYTES: int = wire.int_struct.size

_OPCODE_SET_WATCHES = 101
_FLAG_EPHEMERAL = 1
_FLAG_SEQUENCE = 2

_unpack_int = wire.int_struct.unpack_from
_unpack_stat = wire.stat_struct.unpack_from
STAT_BYTES: int = wire.stat_struct.size
_request_header = struct.Struct("!iii")

#: What a request's length counts beside its body: xid and opcode.
REQUEST_HEADER_BYTES = 8

unpack_length = _unpack_int
unpack_reply_header = wire.reply_header_struct.unpack_from

PING_FRAME = _request_header.pack(REQUEST_HEADER_BYTES, XID_PING, wire.Ping.type)


class ProtocolViolation(Exception):
    """The server sent what no ZooKeeper sends. The connection cannot be trusted any more."""


Decoder = Callable[[bytes, int, int], Any]


class Request:
    """One operation: what is sent, how its answer is read, and who waits for it."""

    __slots__ = ("body", "decode", "future", "opcode", "operation", "path", "watch", "xid")

    def __init__(
        self, operation: str, path: str, opcode: int, body: bytes, decode: Decoder, watch: bool = False
    ) -> None:
        self.operation = operation
        self.path = path
        self.opcode = opcode
        self.body = body
        self.decode = decode
        self.watch = watch
        self.xid = 0
        self.future: Future[Reply[Any]] = Future((operation, path))

    def frame(self, xid: int) -> bytes:
        """The bytes to send; from here on the request goes by `xid`."""
        self.xid = xid
        return _request_header.pack(len(self.body) + REQUEST_HEADER_BYTES, xid, self.opcode) + self.body


# -- requests -----------------------------------------------------------------------------------


def create(
    chroot: Chroot, path: str, data: bytes, *, ephemeral: bool, sequence: bool, acls: list[Any] = OPEN_ACL_UNSAFE
) -> Request:
    def read_created(buffer: bytes, offset: int, end: int) -> str:
        return chroot.to_client(read_path(buffer, offset, end))

    body = create_body(chroot, path, data, ephemeral=ephemeral, sequence=sequence, acls=acls)
    return Request("create", path, wire.Create.type, body, read_created)


def create_body(
    chroot: Chroot, path: str, data: bytes, *, ephemeral: bool, sequence: bool, acls: list[Any] = OPEN_ACL_UNSAFE
) -> bytes:
    flags = (_FLAG_EPHEMERAL if ephemeral else 0) | (_FLAG_SEQUENCE if sequence else 0)
    return wire.Create(chroot.to_server(path), data, acls, flags).serialize()  # type: ignore[no-any-return]


def get(chroot: Chroot, path: str, *, watch: bool) -> Request:
    body = wire.GetData(chroot.to_server(path), watch).serialize()
    return Request("get", path, wire.GetData.type, body, read_node, watch)


def children(chroot: Chroot, path: str, *, watch: bool) -> Request:
    body = wire.GetChildren2(chroot.to_server(path), watch).serialize()
    return Request("children", path, wire.GetChildren2.type, body, _read_children, watch)


def exists(chroot: Chroot, path: str, *, watch: bool) -> Request:
    """`watch` becomes a data watch if the znode is there, else one for its creation."""
    body = wire.Exists(chroot.to_server(path), watch).serialize()
    return Request("exists", path, wire.Exists.type, body, read_stat, watch)


def set_data(chroot: Chroot, path: str, data: bytes, version: int) -> Request:
    body = wire.SetData(chroot.to_server(path), data, version).serialize()
    return Request("set", path, wire.SetData.type, body, read_stat)


def delete(chroot: Chroot, path: str, version: int) -> Request:
    body = wire.Delete(chroot.to_server(path), version).serialize()
    return Request("delete", path, wire.Delete.type, body, _read_nothing)


def close_session() -> Request:
    return Request("close", "", wire.Close.type, b"", _read_nothing)


def set_watches(chroot: Chroot, zxid: int, data: list[str], exists: list[str], children: list[str]) -> Request:
    """Opcode 101, which kazoo lacks: tells a server which watches a session still waits for.
    It fires at once those whose znode changed after `zxid`."""
    parts = [wire.long_struct.pack(zxid)]
    for paths in (data, exists, children):
        parts.append(wire.int_struct.pack(len(paths)))
        parts.extend(wire.write_string(chroot.to_server(path)) for path in paths)
    return Request("set watches", "", _OPCODE_SET_WATCHES, b"".join(parts), _read_nothing)


def connect_frame(last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    """The first frame of a connection; it has no header."""
    body = wire.Connect(0, last_zxid, timeout_ms, session_id, password, False).serialize()
    return bytes(wire.int_struct.pack(len(body)) + body)


# -- answers ------------------------------------------------------------------------------------


class Welcome(NamedTuple):
    """The answer to the first frame. A `timeout_ms` of 0 says that the session has expired."""

    timeout_ms: int
    session_id: int
    password: bytes


def read_welcome(buffer: bytes, start: int, end: int) -> Welcome:
    """Raises ProtocolViolation."""
    try:
        answer, offset = wire.Connect.deserialize(buffer[start:end], 0)
    except struct.error as error:
        raise ProtocolViolation(f"a connect response of {end - start} bytes: {error}") from error
    if answer.passwd is None or offset > end - start:
        raise ProtocolViolation(f"a connect response of {end - start} bytes that promises more")
    return Welcome(answer.time_out, answer.session_id, answer.passwd)


def read_watch_event(buffer: bytes, offset: int, end: int) -> tuple[int, str]:
    """(event type, path). Raises ProtocolViolation."""
    if end - offset < 12:
        short(offset, end)
    kind, _state = wire.int_int_struct.unpack_from(buffer, offset)
    return kind, read_path(buffer, offset + 8, end)


def read_path(buffer: bytes, offset: int, end: int) -> str:
    return read_text(buffer, offset, end)[0]


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
    return Node(data, read_stat(buffer, offset, end))


def read_stat(buffer: bytes, offset: int, end: int) -> Stat:
    if end - offset < STAT_BYTES:
        short(offset, end)
    return Stat(*_unpack_stat(buffer, offset))


def _read_children(buffer: bytes, offset: int, end: int) -> Children:
    names, offset = read_names(buffer, offset, end)
    return Children(names, read_stat(buffer, offset, end))


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


def _read_nothing(_buffer: bytes, _offset: int, _end: int) -> None:
    return None


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"a name that is not UTF-8: {raw[:80]!r}") from error


def short(offset: int, end: int) -> NoReturn:
    raise ProtocolViolation(f"an answer that ends too early: {end - offset} bytes are left where more must follow")
