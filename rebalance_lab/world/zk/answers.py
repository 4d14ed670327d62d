"""Between a session's own paths and the server's: the operations of a request, and what an answer becomes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar, cast

from msgspec.structs import replace

from rebalance_lab.world import errors
from rebalance_lab.world.ports import GetRead, ReadOperation, WriteOperation
from rebalance_lab.world.zk.connect_string import Chroot
from rebalance_lab.world.zk.messages import Answer, Done, Found, Operation, Refusal, Request

Part = TypeVar("Part", bound=WriteOperation | ReadOperation)


def name_of(operation: WriteOperation | ReadOperation) -> str:
    """The name of one operation of many in a message: `create`, `get`."""
    return _name(type(operation))


@cache
def _name(kind: type[WriteOperation | ReadOperation]) -> str:
    return kind.__name__.removesuffix("Read").lower()


def at_server(chroot: Chroot, operations: Sequence[Part]) -> tuple[Part, ...]:
    """The operations with the server's paths."""
    if not chroot.prefix:
        return tuple(operations)
    to_server = chroot.to_server
    return tuple(
        [
            type(each)(to_server(each.path)) if isinstance(each, GetRead) else replace(each, path=to_server(each.path))
            for each in operations
        ]
    )


def failure(chroot: Chroot, request: Request, answer: Answer, session_id: int) -> errors.ZooKeeperError:
    """The error of an answer that has a code."""
    if not isinstance(answer.value, Refusal):
        return _error(chroot, request.operation.name.lower(), request.path, answer.code, answer.zxid, session_id)
    index = answer.value.index
    refused = request.writes[index]
    reason = _error(chroot, name_of(refused), refused.path, answer.code, answer.zxid, session_id)
    return errors.MultiRefused(index, reason)


def value(chroot: Chroot, request: Request, answer: Answer, session_id: int) -> object:
    """The value of the reply: created paths are the client's own, and codes of single reads are errors."""
    if request.reads:
        found = cast(tuple[Found, ...], answer.value)
        if int not in set(map(type, found)):
            return found
        both = zip(request.reads, found, strict=True)
        return tuple([_read(chroot, read, each, answer.zxid, session_id) for read, each in both])
    if not chroot.prefix:
        return answer.value
    if request.operation is Operation.CREATE:
        return chroot.to_client(cast(str, answer.value))
    if request.operation is Operation.MULTI:
        done = cast(tuple[Done, ...], answer.value)
        return tuple(chroot.to_client(each) if isinstance(each, str) else each for each in done)
    return answer.value


def _read(chroot: Chroot, read: ReadOperation, found: Found, zxid: int, session_id: int) -> object:
    return _error(chroot, name_of(read), read.path, found, zxid, session_id) if isinstance(found, int) else found


def _error(chroot: Chroot, name: str, path: str, code: int, zxid: int, session_id: int) -> errors.ZooKeeperError:
    found = errors.error_for(code, name, chroot.to_client(path), zxid=zxid, session_id=session_id)
    if chroot.prefix and isinstance(found, errors.NoNode) and name == "create" and found.path.count("/") == 1:
        found.tell(f": the chroot {chroot.prefix} of the connect string does not exist; create it, or leave it out")
    return found
