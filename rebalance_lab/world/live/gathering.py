"""One `multi_read`, as the requests it takes: several beyond a thousand reads, and single reads
where a server is older than ZooKeeper 3.6.

How an old server is noticed: it answers opcode 22 with Unimplemented (-6), at once and ahead of
what was asked before, and closes the connection (seen with 3.4.14; UnimplementedRequestProcessor).
So the session breaks the connection in good order, remembers the server, and asks again with
single reads on the next connection, and from then on with single reads at once. What else was
in flight fails with ConnectionLoss, this one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from rebalance_lab.kernel import Future
from rebalance_lab.world import errors
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.live import codec
from rebalance_lab.world.live.codec import Request
from rebalance_lab.world.live.connect_string import Chroot
from rebalance_lab.world.live.multi import UNIMPLEMENTED, Failed, Result, in_requests, multi_read
from rebalance_lab.world.ports import Children, GetRead, ReadOperation, ReadResult, Reply

#: Single reads that fail so say nothing about the znode: the whole multi-read fails.
_NO_ANSWER = (errors.ConnectionLoss, errors.SessionExpired, errors.SessionClosed, errors.RequestTooLarge)


class Asker(Protocol):
    """The session."""

    chroot: Chroot

    @property
    def session_id(self) -> int: ...
    @property
    def knows_multi_read(self) -> bool:
        """No server of this session was found to know none."""
        ...

    def submit(self, request: Request) -> Future[Reply[Any]]: ...


class MultiRead:
    """`future` completes when the last request has; its zxid is that of the last answer."""

    def __init__(self, session: Asker, reads: Sequence[ReadOperation]) -> None:
        self.future: Future[Reply[tuple[ReadResult, ...]]] = Future(("multi_read", len(reads)))
        self._session = session
        self._reads = reads
        self._results: list[ReadResult | None] = [self._refused(read) for read in reads]
        self._sound = [index for index, result in enumerate(self._results) if result is None]
        self._missing = 0
        self._singly = False
        if session.knows_multi_read:
            self._ask()
        else:
            self._ask_singly()

    def _refused(self, read: ReadOperation) -> ReadResult | None:
        """The error of a read that is not even sent."""
        session = self._session
        if session.chroot.takes(read.path):
            return None
        return errors.BadArguments(_operation(read), read.path, session_id=session.session_id)

    def _ask(self) -> None:
        requests = list(in_requests([self._reads[index] for index in self._sound]))
        self._missing = len(requests)
        begin = 0
        for reads in requests:
            indices = self._sound[begin : begin + len(reads)]
            self._session.submit(multi_read(self._session.chroot, reads)).on(partial(self._answered, indices))
            begin += len(reads)

    def _answered(self, indices: list[int], asked: Future[Reply[tuple[Result, ...]]]) -> None:
        if self._singly:
            return
        error = asked.error
        if error is None:
            reply = asked.result()
            for index, result in zip(indices, reply.value, strict=True):
                self._results[index] = self._told(index, result, reply.zxid)
            self._one_less(reply.zxid)
        elif isinstance(error, errors.UnknownError) and error.code == UNIMPLEMENTED:
            self._ask_singly()
        else:
            self.future.fail(error)

    def _told(self, index: int, result: Result, zxid: int) -> ReadResult:
        if isinstance(result, Failed):
            read = self._reads[index]
            return errors.error_for(
                result.code, _operation(read), read.path, zxid=zxid, session_id=self._session.session_id
            )
        return result  # type: ignore[return-value]  # the request's own reader made it

    # -- older servers ----------------------------------------------------------------------

    def _ask_singly(self) -> None:
        self._singly = True
        self._missing = len(self._sound)
        chroot = self._session.chroot
        for index in self._sound:
            read = self._reads[index]
            make = codec.get if isinstance(read, GetRead) else codec.children
            asked = self._session.submit(make(chroot, read.path, watch=False))
            asked.on(partial(self._answered_singly, index))
        if not self._sound:  # nothing to ask: there is no answer, and no zxid
            self.future.set(Reply(tuple(self._results), -1))  # type: ignore[arg-type]

    def _answered_singly(self, index: int, asked: Future[Reply[Any]]) -> None:
        error = asked.error
        if error is None:
            reply = asked.result()
            value = reply.value
            self._results[index] = value.names if isinstance(value, Children) else value
            self._one_less(reply.zxid)
        elif isinstance(error, ZooKeeperError) and not isinstance(error, _NO_ANSWER):
            self._results[index] = error
            self._one_less(error.zxid)
        else:
            self.future.fail(error)

    def _one_less(self, zxid: int) -> None:
        self._missing -= 1
        if self._missing == 0:
            self.future.set(Reply(tuple(self._results), zxid))  # type: ignore[arg-type]  # each has one by now


def _operation(read: ReadOperation) -> str:
    return "get" if isinstance(read, GetRead) else "children"
