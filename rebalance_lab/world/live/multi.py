"""Multi and multi-read on the wire: opcodes 14 and 22 (kazoo lacks the second, servers before 3.6 too).

Both are a list of operations, each behind a header (type, done, error), ended by a header that
says done. In the answer an operation that failed has type -1 and its code. A multi that was
refused gives code 0 for those before the first that failed, and RuntimeInconsistency behind it
(DataTree.processTxn); of a multi-read each stands for itself (FinalRequestProcessor).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never

from kazoo.protocol import serialization as wire
from kazoo.security import OPEN_ACL_UNSAFE

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import BadArguments, MultiRefused, error_for
from rebalance_lab.world.live.codec import (
    STAT_BYTES,
    ProtocolViolation,
    Request,
    create_body,
    read_names,
    read_node,
    read_stat,
    read_text,
    short,
)
from rebalance_lab.world.ports import (
    Check,
    Create,
    Delete,
    GetRead,
    Node,
    ReadOperation,
    ReadResult,
    Reply,
    Set,
    Stat,
    WriteOperation,
)
from rebalance_lab.world.zk.connect_string import Chroot

OPCODE_MULTI_READ = 22

#: Reads of one request. At Kafka's znodes of some hundred bytes its answer stays well below
#: 1 MB; beyond 4 KB a znode it may grow above FRAME_LIMIT_BYTES, which breaks the connection.
READS_PER_REQUEST = 1_000

#: And what their paths may take.
READ_REQUEST_LIMIT_BYTES = 128 * 1024

_GET_DATA: int = wire.GetData.type
_GET_CHILDREN: int = wire.GetChildren.type
_ERROR = -1

_header = wire.multiheader_struct
_END: bytes = _header.pack(_ERROR, True, -1)


@dataclass(frozen=True, slots=True)
class Failed:
    """The result of an operation that was not done; `code` is ZooKeeper's, 0 for one that would
    have been."""

    code: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to a multi of which nothing was done: its first operation that failed."""

    index: int
    operation: str
    path: str
    code: int

    def error(self, zxid: int, session_id: int) -> MultiRefused:
        return MultiRefused(
            self.index, error_for(self.code, self.operation, self.path, zxid=zxid, session_id=session_id)
        )


Result = str | Stat | Node | tuple[str, ...] | Failed | None


# -- requests -----------------------------------------------------------------------------------


def multi(chroot: Chroot, operations: Sequence[WriteOperation], acls: list[Any] = OPEN_ACL_UNSAFE) -> Request:
    """The answer is a tuple of the operations' results, or Refused."""

    def read_all(buffer: bytes, offset: int, end: int) -> tuple[Result, ...] | Refused:
        results = _read_results(buffer, offset, end, len(operations))
        if any(isinstance(each, Failed) for each in results):
            return _refusal(operations, results)
        return tuple(chroot.to_client(each) if isinstance(each, str) else each for each in results)

    parts = (_write(chroot, each, acls) for each in operations)
    path = operations[0].path if operations else "/"
    return Request("multi", path, wire.Transaction.type, _body(parts), read_all)


def multi_read(chroot: Chroot, reads: Sequence[ReadOperation]) -> Request:
    """The answer is a tuple of a Node, names of children, or Failed, for each."""

    def read_all(buffer: bytes, offset: int, end: int) -> tuple[Result, ...]:
        return tuple(_read_results(buffer, offset, end, len(reads)))

    parts = (_read(chroot, each) for each in reads)
    path = reads[0].path if reads else "/"
    return Request("multi_read", path, OPCODE_MULTI_READ, _body(parts), read_all)


def _body(parts: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join([_header.pack(kind, False, -1) + part for kind, part in parts]) + _END


def _write(chroot: Chroot, operation: WriteOperation, acls: list[Any]) -> tuple[int, bytes]:
    path = chroot.to_server(operation.path)
    match operation:
        case Create(_, data, ephemeral, sequence):
            body = create_body(chroot, operation.path, data, ephemeral=ephemeral, sequence=sequence, acls=acls)
            return wire.Create.type, body
        case Set(_, data, version):
            return wire.SetData.type, wire.SetData(path, data, version).serialize()
        case Delete(_, version):
            return wire.Delete.type, wire.Delete(path, version).serialize()
        case Check(_, version):
            return wire.CheckVersion.type, wire.CheckVersion(path, version).serialize()
        case _:
            assert_never(operation)


def _read(chroot: Chroot, operation: ReadOperation) -> tuple[int, bytes]:
    path = chroot.to_server(operation.path)
    if isinstance(operation, GetRead):
        return _GET_DATA, wire.GetData(path, False).serialize()
    return _GET_CHILDREN, wire.GetChildren(path, False).serialize()


def in_requests(reads: Sequence[ReadOperation]) -> Iterator[Sequence[ReadOperation]]:
    """The reads in as few requests as their limits allow, in order; at least one request."""
    begin = size = 0
    for index, read in enumerate(reads):
        length = len(read.path.encode()) + _header.size + 5
        if index - begin >= READS_PER_REQUEST or (size and size + length > READ_REQUEST_LIMIT_BYTES):
            yield reads[begin:index]
            begin, size = index, 0
        size += length
    yield reads[begin:]


# -- answers ------------------------------------------------------------------------------------


def _read_results(buffer: bytes, offset: int, end: int, count: int) -> list[Result]:
    """Raises ProtocolViolation: cut short, of an unknown type, or not `count` of them."""
    results: list[Result] = []
    while True:
        if end - offset < _header.size:
            short(offset, end)
        kind, done, _ = _header.unpack_from(buffer, offset)
        offset += _header.size
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
        if end - offset < wire.int_struct.size:
            short(offset, end)
        return Failed(wire.int_struct.unpack_from(buffer, offset)[0]), offset + wire.int_struct.size
    if kind == wire.Create.type:
        return read_text(buffer, offset, end)
    if kind == wire.SetData.type:
        return read_stat(buffer, offset, end), offset + STAT_BYTES
    if kind in (wire.Delete.type, wire.CheckVersion.type):
        return None, offset
    if kind == _GET_DATA:
        node = read_node(buffer, offset, end)
        return node, offset + wire.int_struct.size + len(node.data) + STAT_BYTES
    if kind == _GET_CHILDREN:
        return read_names(buffer, offset, end)
    raise ProtocolViolation(f"a result of type {kind} in the answer to a multi")


def _refusal(operations: Sequence[WriteOperation], results: Sequence[Result]) -> Refused:
    """Raises ProtocolViolation when operations failed and none says why."""
    for index, (operation, result) in enumerate(zip(operations, results, strict=True)):
        if isinstance(result, Failed) and result.code != 0:
            return Refused(index, type(operation).__name__.lower(), operation.path, result.code)
    raise ProtocolViolation(f"a multi of {len(operations)} operations that failed without a reason")


# -- many reads ---------------------------------------------------------------------------------


class Session(Protocol):
    """What MultiRead needs of a session."""

    chroot: Chroot

    @property
    def session_id(self) -> int: ...
    def submit(self, request: Request) -> Future[Reply[Any]]: ...


class MultiRead:
    """One `multi_read` of the port, as the requests it takes; each request reads a snapshot of its own.

    `future` completes with the last answer, whose zxid it has. It fails with the first request that fails.
    """

    def __init__(self, session: Session, reads: Sequence[ReadOperation]) -> None:
        self.future: Future[Reply[tuple[ReadResult, ...]]] = Future(("multi_read", len(reads)))
        self._session = session
        self._reads = reads
        self._results: list[ReadResult | None] = [
            None if session.chroot.takes(read.path) else self._error(read, BadArguments.code) for read in reads
        ]
        sound = [index for index, result in enumerate(self._results) if result is None]
        requests = list(in_requests([reads[index] for index in sound]))
        self._missing = len(requests)
        begin = 0
        for part in requests:
            indices = sound[begin : begin + len(part)]
            session.submit(multi_read(session.chroot, part)).on(partial(self._answered, indices))
            begin += len(part)

    def _error(self, read: ReadOperation, code: int, zxid: int = -1) -> ReadResult:
        operation = "get" if isinstance(read, GetRead) else "children"
        return error_for(code, operation, read.path, zxid=zxid, session_id=self._session.session_id)

    def _answered(self, indices: list[int], asked: Future[Reply[tuple[Any, ...]]]) -> None:
        if asked.error is not None:
            self.future.fail(asked.error)
            return
        reply = asked.result()
        for index, result in zip(indices, reply.value, strict=True):
            failed = isinstance(result, Failed)
            self._results[index] = self._error(self._reads[index], result.code, reply.zxid) if failed else result
        self._missing -= 1
        if self._missing == 0:
            self.future.set(Reply(tuple(self._results), reply.zxid))  # type: ignore[arg-type]  # each has one by now
