"""A ZooKeeper client that sends many requests before the first reply, as Kafka's brokers do from 1.1 on.

It stands on one session and lives as long: when the session has expired, every request fails, and its owner begins
anew (`kafka.zookeeper.ZooKeeperClient` and `kafka.zk.KafkaZkClient.retryRequestsUntilConnected`, Kafka 1.1 to 3.9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import (
    ConnectionLoss,
    MultiRefused,
    NodeExists,
    SessionClosed,
    SessionExpired,
    ZooKeeperError,
)
from rebalance_lab.world.ports import (
    Create,
    Delete,
    GetRead,
    Node,
    ReadResult,
    Reply,
    SessionState,
    Set,
    WriteOperation,
    WriteResult,
    ZooKeeper,
)

T = TypeVar("T")

#: zookeeper.max.in.flight.requests
IN_FLIGHT = 10

Request = Callable[[ZooKeeper], Future[Reply[T]]]


class Answer(Generic[T]):
    """What came of one of many requests: a reply, or a definite error."""

    __slots__ = ("_reply", "error")

    def __init__(self, reply: Reply[T] | None, error: ZooKeeperError | None) -> None:
        self._reply = reply
        self.error = error

    @property
    def reply(self) -> Reply[T]:
        """Raises the error."""
        if self._reply is None:
            assert self.error is not None
            raise self.error
        return self._reply


class PipelinedClient:
    """Requests on one session. What a lost connection left undecided is asked again on the next one, so a write may be
    carried out twice. A creation, or a write with a version, then finds what the first one has done; a sequential
    creation makes a second znode.

    All methods raise SessionExpired, and SessionClosed after `close`.
    """

    def __init__(self, session: ZooKeeper, *, in_flight: int = IN_FLIGHT) -> None:
        self.session = session
        self._in_flight = in_flight

    async def ask(self, request: Request[T]) -> Reply[T]:
        """The reply to one request. Raises its definite errors."""
        return (await self.ask_all([request]))[0].reply

    async def ask_all(self, requests: Sequence[Request[T]]) -> list[Answer[T]]:
        """The answers to many requests, in their order, each with its own error. At most `in_flight` are under way."""
        answers: list[Answer[T] | None] = [None] * len(requests)
        left = list(range(len(requests)))
        while left:  # endless as in the original: until there is a connection, or the session has expired
            await self._ready()
            for place, answer in zip(left, await self._once([requests[each] for each in left]), strict=True):
                answers[place] = answer
            left = [each for each in left if answers[each] is None]
        return [each for each in answers if each is not None]

    async def _ready(self) -> None:
        """Wait until requests can be asked."""

    async def answer(self, future: Future[Reply[T]]) -> Answer[T] | None:
        """What came of one request; None if the connection was lost."""
        try:
            return Answer(await future, None)
        except ConnectionLoss:
            return None
        except (SessionExpired, SessionClosed):
            raise
        except ZooKeeperError as error:
            return Answer(None, error)

    async def _once(self, requests: Sequence[Request[T]]) -> list[Answer[T] | None]:
        """Ask each once. None: it is to be asked again."""
        flying: list[Future[Reply[T]]] = []
        answers: list[Answer[T] | None] = []
        for request in requests:
            if len(flying) - len(answers) >= self._in_flight:
                answers.append(await self.answer(flying[len(answers)]))
            flying.append(request(self.session))
        while len(answers) < len(flying):
            answers.append(await self.answer(flying[len(answers)]))
        return answers

    def begin_to_read(self, paths: Sequence[str]) -> Reading:
        """Ask at once for many small znodes without a watch, by multi-reads (`ZooKeeper.multi_read`). Kafka reads each
        by a request of its own."""
        return Reading(self, paths)

    # -- writes that many need --------------------------------------------------------------

    async def multi(self, operations: Sequence[WriteOperation]) -> Reply[tuple[WriteResult, ...]]:
        """All of them, or none. Raises MultiRefused."""
        return await self.ask(lambda session: session.multi(operations))

    async def fenced(
        self, fence: WriteOperation, operations: Sequence[WriteOperation], *, together: int = 1
    ) -> list[Answer[WriteResult]]:
        """Operations behind `fence`, in multis of `together` operations each; Kafka's have one. The answers are those
        of the single operations; the error of the fence is raised.

        A multi is refused whole if one of its operations is. Its operations are then asked for again, each in a multi
        of its own.
        """
        parts = [operations[at : at + together] for at in range(0, len(operations), together)]
        found: list[Answer[WriteResult]] = []
        for part, answer in zip(parts, await self.ask_all([_multi(fence, each) for each in parts]), strict=True):
            refused = answer.error
            if refused is None:
                reply = answer.reply
                found += [Answer(Reply(each, reply.zxid), None) for each in reply.value[1:]]
            elif isinstance(refused, MultiRefused) and refused.index == 0:
                raise refused.reason
            elif len(part) > 1:
                found += await self.fenced(fence, part)
            else:
                found.append(Answer(None, refused.reason if isinstance(refused, MultiRefused) else refused))
        return found

    async def unfenced(self, operations: Sequence[WriteOperation]) -> list[Answer[WriteResult]]:
        """Operations without a condition, each in a request of its own, as Kafka before 2.1 writes."""
        return await self.ask_all([partial(_single, each) for each in operations])

    async def ensure_path(self, path: str) -> None:
        """Create a persistent znode without data, and its parents. What is there stays as it is."""
        for end in [at for at, letter in enumerate(path) if letter == "/" and at] + [len(path)]:
            await self.create_if_missing(path[:end])

    async def create_if_missing(self, path: str, data: bytes = b"") -> bool:
        """Create a persistent znode. False if there is one. Raises NoNode without a parent."""
        try:
            await self.ask(lambda session: session.create(path, data))
        except NodeExists:
            return False
        return True


class Reading:
    """Znodes that are being read together while their reader does something else."""

    def __init__(self, client: PipelinedClient, paths: Sequence[str]) -> None:
        self._client = client
        self._reads = [GetRead(each) for each in paths]
        self._asked = self._request(client.session)

    async def nodes(self) -> list[Node | ZooKeeperError]:
        """Of each path the node, or the definite error. They are asked for again if the connection was lost."""
        answer = await self._client.answer(self._asked)
        reply = await self._client.ask(self._request) if answer is None else answer.reply
        return [each for each in reply.value if not isinstance(each, tuple)]

    def _request(self, session: ZooKeeper) -> Future[Reply[tuple[ReadResult, ...]]]:
        return session.multi_read(self._reads)


class RenewedClient(PipelinedClient):
    """A client whose requests go on in the next session when theirs has expired, as those of ZkClient 0.3 do
    (`ZkClient.retryUntilConnected`). Whoever uses it hears of the end of a session by its watches only."""

    def __init__(self, session: ZooKeeper, *, in_flight: int) -> None:
        super().__init__(session, in_flight=in_flight)
        self._renewed: Future[None] = Future("the next session")

    def renew(self, session: ZooKeeper) -> None:
        """Go on in this session."""
        self.session = session
        renewed, self._renewed = self._renewed, Future("the next session")
        renewed.set(None)

    async def _ready(self) -> None:
        while self.session.state is SessionState.EXPIRED:
            await self._renewed

    async def answer(self, future: Future[Reply[T]]) -> Answer[T] | None:
        try:
            return await super().answer(future)
        except SessionExpired:
            return None


def _single(operation: WriteOperation, session: ZooKeeper) -> Future[Reply[Any]]:
    """Raises ValueError for a check, which only a multi can have."""
    match operation:
        case Create():
            return session.create(operation.path, operation.data, ephemeral=operation.ephemeral)
        case Set():
            return session.set(operation.path, operation.data, version=operation.version)
        case Delete():
            return session.delete(operation.path, version=operation.version)
        case _:
            raise ValueError(f"a check of {operation.path} stands alone: give it to a multi")


def _multi(fence: WriteOperation, operations: Sequence[WriteOperation]) -> Request[tuple[WriteResult, ...]]:
    return lambda session: session.multi([fence, *operations])
