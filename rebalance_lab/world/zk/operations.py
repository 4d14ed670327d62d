"""The operations of the port `world.ports.ZooKeeper`, as the requests that they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import BadArguments, MultiRefused
from rebalance_lab.world.ports import (
    Children,
    Node,
    ReadOperation,
    ReadResult,
    Reply,
    Stat,
    WriteOperation,
    WriteResult,
)
from rebalance_lab.world.zk.answers import at_server, name_of
from rebalance_lab.world.zk.connect_string import Chroot
from rebalance_lab.world.zk.messages import Operation


class Operations(ABC):
    """What a session can be asked for. `session_id`: for errors."""

    __slots__ = ()

    session_id: int
    _chroot: Chroot

    @abstractmethod
    def _ask(self, operation: Operation, path: str, watch: bool = False, **fields: Any) -> Future[Reply[Any]]:
        """Send a request with these fields, keep it for the next connection, or refuse it. Raises MailboxFull."""

    @abstractmethod
    def _in_requests(self, reads: Sequence[ReadOperation]) -> Iterable[Sequence[ReadOperation]]:
        """The reads of a multi-read, in the requests that they take; at least one."""

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        return self._ask(Operation.CREATE, path, data=data, ephemeral=ephemeral, sequence=sequence)

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self._ask(Operation.GET, path, watch)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self._ask(Operation.CHILDREN, path, watch)

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self._ask(Operation.EXISTS, path, watch)

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._ask(Operation.SET, path, data=data, version=version)

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._ask(Operation.DELETE, path, version=version)

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        for index, operation in enumerate(operations):
            if not self._chroot.takes(operation.path):
                refused: Future[Reply[tuple[WriteResult, ...]]] = Future(("multi", operation.path))
                name = name_of(operation)
                reason = BadArguments(name, operation.path, session_id=self.session_id)
                refused.fail(MultiRefused(index, reason))
                return refused
        path = operations[0].path if operations else "/"
        return self._ask(Operation.MULTI, path, writes=at_server(self._chroot, operations))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        """See the port. Each request that the reads take (`zk.transport.Transport`) reads a snapshot of its own."""
        sound = reads
        if not self._chroot.takes_all([read.path for read in reads]):
            sound = [read for read in reads if self._chroot.takes(read.path)]
        asked = [
            self._ask(Operation.MULTI_READ, part[0].path if part else "/", reads=at_server(self._chroot, part))
            for part in self._in_requests(sound)
        ]
        return MultiRead(reads, self._chroot, asked, self.session_id).future


class MultiRead:
    """`future` completes with the answer to the last request, whose zxid it has, and fails with the first request that
    fails. A read whose path cannot be sent is in no request; its result is BadArguments."""

    def __init__(
        self, reads: Sequence[ReadOperation], chroot: Chroot, asked: Sequence[Future[Reply[Any]]], session_id: int
    ) -> None:
        self.future: Future[Reply[tuple[ReadResult, ...]]] = Future(asked[0].label)
        self._reads = reads
        self._chroot = chroot
        self._session_id = session_id
        self._found: list[ReadResult] = []
        self._missing = len(asked)
        for each in asked:
            each.on(self._answered)

    def _answered(self, asked: Future[Reply[tuple[ReadResult, ...]]]) -> None:
        if asked.error is not None:
            self.future.fail(asked.error)
            return
        reply = asked.result()
        self._found.extend(reply.value)
        self._missing -= 1
        if self._missing == 0:
            self.future.set(Reply(self._results(), reply.zxid))

    def _results(self) -> tuple[ReadResult, ...]:
        if len(self._found) == len(self._reads):
            return tuple(self._found)
        found = iter(self._found)
        return tuple(
            [
                next(found)
                if self._chroot.takes(read.path)
                else BadArguments(name_of(read), read.path, session_id=self._session_id)
                for read in self._reads
            ]
        )
