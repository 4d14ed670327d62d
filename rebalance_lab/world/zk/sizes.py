"""The lengths of requests on the wire, to the byte (jute), so that both worlds refuse the same requests as too long.

The simulator sends no bytes; a live session measures those that it sends.
"""

from __future__ import annotations

from rebalance_lab.world.ports import Check, Create, Delete, Set, WriteOperation
from rebalance_lab.world.zk.messages import Operation, Request

#: `jute.maxbuffer` as ZooKeeper has it by default: the longest request, its header included and
#: the four bytes of the frame's length not.
REQUEST_LIMIT_BYTES = 0xFFFFF

_INT = 4
_BOOL = 1
_HEADER = 2 * _INT  # xid and opcode
_MULTI_HEADER = 2 * _INT + _BOOL  # before each operation of a multi, and after the last
_OPEN_ACL = 4 * _INT + len("world") + len("anyone")  # one entry: the count, its permissions, scheme, id


def request_bytes(request: Request) -> int:
    """The length of the frame that a real client would send."""
    operation = request.operation
    if operation is Operation.MULTI:
        return _HEADER + _MULTI_HEADER + sum(_MULTI_HEADER + _write_bytes(each) for each in request.writes)
    if operation is Operation.MULTI_READ:
        return _HEADER + _MULTI_HEADER + sum(_MULTI_HEADER + _text(each.path) + _BOOL for each in request.reads)
    if operation is Operation.CREATE:
        return _HEADER + _create_bytes(request.path, request.data)
    if operation is Operation.SET:
        return _HEADER + _text(request.path) + _INT + len(request.data) + _INT
    return _HEADER + _text(request.path) + (_INT if operation is Operation.DELETE else _BOOL)


def _write_bytes(operation: WriteOperation) -> int:
    match operation:
        case Create():
            return _create_bytes(operation.path, operation.data)
        case Set():
            return _text(operation.path) + _INT + len(operation.data) + _INT
        case Delete() | Check():
            return _text(operation.path) + _INT


def _create_bytes(path: str, data: bytes) -> int:
    return _text(path) + _INT + len(data) + _OPEN_ACL + _INT


def _text(text: str) -> int:
    return _INT + len(text.encode("utf-8", "surrogatepass"))
