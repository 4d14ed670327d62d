"""Both ends of a connection (`world.network`), in every world. A world supplies pipes, which carry frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from rebalance_lab.kernel import Future, Kernel, Timer
from rebalance_lab.world.network import (
    Address,
    CannotConnect,
    Codec,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Frame,
    FrameTooLarge,
    Limits,
    NetworkError,
    ProtocolViolated,
    RequestTimedOut,
    ServerConnection,
    TooManyRequests,
)

Q = TypeVar("Q")
R = TypeVar("R")

_CORRELATION_IDS = 1 << 31


class Pipe(Protocol):
    """One end of a connection, as a world supplies it. It calls `connected` and `arrived`, and `lost` when the
    connection has ended, of whoever owns it; after `close` or `abort` it calls nothing but `lost`, which does nothing
    then."""

    def write(self, frame: Frame) -> None: ...
    def room(self) -> Future[None]:
        """Done when more may be written, or the connection is lost."""
        ...

    def read_one(self) -> None:
        """Let one frame arrive, or the end of the connection. Only a server's end waits for this."""
        ...

    def close(self) -> None:
        """What was written still arrives."""
        ...

    def abort(self) -> None:
        """Reset the connection, or give up the attempt at one."""
        ...


class _End(Generic[Q, R]):
    """What both ends have in common. `peer`: who is on the other side."""

    def __init__(self, kernel: Kernel, peer: Address | str, codec: Codec[Q, R], limits: Limits, pipe: Pipe) -> None:
        self.ended: Future[str] = Future(("end of the connection with", peer))
        self.limits = limits
        self._kernel = kernel
        self._peer = peer
        self._codec = codec
        self._pipe = pipe

    def lost(self, why: str, kind: type[ConnectionLost] = ConnectionLost) -> None:
        """The connection has ended. Again: nothing happens. `kind`: the error of whoever waits."""
        raise NotImplementedError

    def violated(self, why: str) -> None:
        """The other side sent what it may not: reset the connection."""
        self._pipe.abort()
        self.lost(why, ProtocolViolated)

    def takes(self, length: int) -> bool:
        """Whether a frame of this length may come. Otherwise the other side has violated the limit."""
        allowed = 0 <= length <= self.limits.frame_bytes
        if not allowed:
            self.violated(f"a frame of {length} bytes; the limit is {self.limits.frame_bytes}")
        return allowed

    def _too_large(self, frame: Frame) -> FrameTooLarge | None:
        if isinstance(frame, bytes) and len(frame) > self.limits.frame_bytes:
            return FrameTooLarge(self._peer, f"a frame of {len(frame)} bytes; the limit is {self.limits.frame_bytes}")
        return None


@dataclass(slots=True)
class _Asked(Generic[Q]):
    correlation_id: int
    request: Q
    reply: Future[Any]
    timer: Timer | None = None


class ClientConnection(_End[Q, R]):
    """The port `world.network.Connection`, from the attempt on. `opened`: the answer to `Network.connect`."""

    def __init__(
        self, kernel: Kernel, address: Address, codec: Codec[Q, R], timeout_us: int, limits: Limits, pipe: Pipe
    ) -> None:
        super().__init__(kernel, address, codec, limits, pipe)
        self.address = address
        self.opened: Future[Connection[Q, R]] = Future(("connection to", address))
        self.opened.cause = kernel.cause
        self._attempt = kernel.call_at(kernel.now_us() + timeout_us, partial(self._attempt_timed_out, timeout_us))
        self._asked: deque[_Asked[Q]] = deque()
        self._next_id = 0

    # -- for the world ----------------------------------------------------------------------

    def connected(self) -> None:
        """The server's host took the connection."""
        self._attempt.cancel()
        self.opened.set(self)

    def arrived(self, frame: Frame) -> None:
        if not self._asked:
            self.violated("a reply came, and nothing was asked")
            return
        asked = self._asked[0]
        try:
            correlation_id, reply = self._codec.decode_reply(asked.request, frame)
        except self._codec.malformed as error:
            self.violated(f"a reply that cannot be read: {error}")
            return
        if correlation_id != asked.correlation_id:
            self.violated(f"a reply with correlation id {correlation_id} where {asked.correlation_id} comes next")
            return
        self._asked.popleft()
        if asked.timer is not None:
            asked.timer.cancel()
        asked.reply.set(reply)

    def lost(self, why: str, kind: type[ConnectionLost] = ConnectionLost) -> None:
        if not self.ended.set(why):
            return
        self._attempt.cancel()
        self.opened.fail(CannotConnect(self.address, why))
        asked, self._asked = self._asked, deque()
        for each in asked:
            if each.timer is not None:
                each.timer.cancel()
            each.reply.fail(kind(self.address, f"{why}; what became of the request is unknown"))

    # -- the port ---------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return len(self._asked)

    def request(self, request: Q, *, timeout_us: int | None = None) -> Future[R]:
        reply: Future[R] = Future(("reply of", self.address))
        reply.cause = self._kernel.cause
        asked = _Asked(self._next_id, request, reply)
        refused = self._write(request)
        if refused is not None:
            return _failed(refused)
        if timeout_us is not None:
            due_us = self._kernel.now_us() + timeout_us
            asked.timer = self._kernel.call_at(due_us, partial(self._request_timed_out, asked, timeout_us))
        self._asked.append(asked)
        return reply

    def send(self, request: Q) -> Future[None]:
        refused = self._write(request)
        return self._pipe.room() if refused is None else _failed(refused)

    def close(self) -> None:
        if not self.ended.done:
            self._pipe.close()
            self.lost("closed by its owner")

    # -- inside -----------------------------------------------------------------------------

    def _write(self, request: Q) -> NetworkError | None:
        """Why nothing was written."""
        frame = self._codec.encode_request(self._next_id, request)
        if self.ended.done:
            return ConnectionClosed(self.address, self.ended.result())
        if len(self._asked) >= self.limits.in_flight:
            return TooManyRequests(self.address, f"{len(self._asked)} requests have no reply, which is the limit")
        if (large := self._too_large(frame)) is not None:
            return large
        self._next_id = (self._next_id + 1) % _CORRELATION_IDS
        self._pipe.write(frame)
        return None

    def _attempt_timed_out(self, timeout_us: int) -> None:
        self._pipe.abort()
        self.lost(f"no answer within {timeout_us / 1000:g} ms")

    def _request_timed_out(self, asked: _Asked[Q], timeout_us: int) -> None:
        self._pipe.abort()
        why = f"no reply within {timeout_us / 1000:g} ms"
        asked.reply.fail(RequestTimedOut(self.address, f"{why}; what became of the request is unknown"))
        self.lost(why)


class AcceptedConnection(_End[Q, R]):
    """The port `world.network.ServerConnection`. `peer`: who connected, for logs."""

    def __init__(self, kernel: Kernel, peer: str, codec: Codec[Q, R], limits: Limits, pipe: Pipe) -> None:
        super().__init__(kernel, peer, codec, limits, pipe)
        self.peer = peer
        self.leaving: Future[str] = Future(("departure of", peer))
        self._receiving: Future[Q] | None = None
        #: The request in hand, with its correlation id.
        self._request: tuple[int, Q] | None = None

    # -- for the world ----------------------------------------------------------------------

    def arrived(self, frame: Frame) -> None:
        """One frame, after the pipe was told to `read_one`."""
        try:
            self._request = self._codec.decode_request(frame)
        except self._codec.malformed as error:
            self.violated(f"a request that cannot be read: {error}")
            return
        assert self._receiving is not None, "a frame was asked for"
        self._receiving.set(self._request[1])

    def left(self, why: str) -> None:
        """The other side sends no more."""
        self.leaving.set(why)

    def lost(self, why: str, kind: type[ConnectionLost] = ConnectionLost) -> None:
        self.leaving.set(why)
        if self.ended.set(why) and self._receiving is not None:
            self._receiving.fail(kind(self.peer, why))

    # -- the port ---------------------------------------------------------------------------

    def receive(self) -> Future[Q]:
        if self._receiving is not None and not self._receiving.done:
            return self._receiving
        receiving: Future[Q] = Future(("request of", self.peer))
        self._receiving = receiving
        self._request = None
        if self.ended.done:
            receiving.fail(ConnectionLost(self.peer, self.ended.result()))
        else:
            self._pipe.read_one()
        return receiving

    def reply(self, reply: R) -> Future[None]:
        if self._request is None:
            raise RuntimeError(f"there is no request of {self.peer} to reply to: receive one first")
        frame = self._codec.encode_reply(*self._request, reply)
        refused: NetworkError | None = self._too_large(frame)
        if self.ended.done:
            refused = ConnectionClosed(self.peer, self.ended.result())
        if refused is not None:
            return _failed(refused)
        self._request = None
        self._pipe.write(frame)
        return self._pipe.room()

    def close(self, why: str = "closed by the server") -> None:
        if not self.ended.done:
            self._pipe.close()
            self.lost(why)


class Door(Generic[Q, R]):
    """The port `world.network.Listener`. `stop`: ends what the world does for it."""

    def __init__(self, address: Address, limits: Limits, stop: Callable[[], object]) -> None:
        self.address = address
        self._limits = limits
        self._stop = stop
        self._closed = False
        self._waiting: deque[ServerConnection[Q, R]] = deque()
        self._accepting: Future[ServerConnection[Q, R]] | None = None

    def came(self, connection: ServerConnection[Q, R]) -> None:
        """A client has connected."""
        if self._accepting is not None and not self._accepting.done:
            self._accepting.set(connection)
        elif self._closed or len(self._waiting) >= self._limits.waiting:
            connection.close("the server takes no more connections")
        else:
            self._waiting.append(connection)

    def accept(self) -> Future[ServerConnection[Q, R]]:
        if self._accepting is not None and not self._accepting.done:
            return self._accepting
        accepting: Future[ServerConnection[Q, R]] = Future(("connection at", self.address))
        self._accepting = accepting
        if self._waiting:
            accepting.set(self._waiting.popleft())
        elif self._closed:
            accepting.fail(ConnectionClosed(self.address, "the listener was closed"))
        return accepting

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._stop()
        while self._waiting:
            self._waiting.popleft().close("the server takes no more connections")
        if self._accepting is not None:
            self._accepting.fail(ConnectionClosed(self.address, "the listener was closed"))


def _failed(error: NetworkError) -> Future[Any]:
    """A future that has failed."""
    failed: Future[Any] = Future(("nothing was sent to", error.peer))
    failed.fail(error)
    return failed
