"""The port to a network: connections that carry requests one way, and their replies the other way in the same order.

Messages are typed and frozen; a codec that is handed in turns them into the bytes of a frame. On the wire a frame
stands behind its length, four bytes, as in Kafka's protocol. In the simulator messages pass as they are, unless the
world was told to carry bytes (`world.net.codecs`).

What a caller can rely on, in every world:

- Nothing is lost without a word: what was sent arrives, in order, or the connection ends. When it ends the other side
  may not learn of it for as long as the network between them is cut (a half-open connection).
- A server reads one request of a connection at a time, when it asks for one; the next waits in the network. A client
  has at most `Limits.in_flight` requests without a reply. So neither side needs a queue without a limit.
- Errors are definite (nothing was done) unless they say that the outcome is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rebalance_lab.kernel import Future

Q = TypeVar("Q")
R = TypeVar("R")
Q_contra = TypeVar("Q_contra", contravariant=True)
R_contra = TypeVar("R_contra", contravariant=True)

#: What a codec makes of a message: bytes, in every codec that is not the simulator's own.
Frame = Any


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """The address that `host:port` names. Raises ValueError."""
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class Limits:
    """`frame_bytes`: the longest frame that is sent or read, without its length (Kafka's socket.request.max.bytes).
    `in_flight`: requests of a client without a reply (Kafka's max.in.flight.requests.per.connection). `waiting`:
    connections that a server has not taken yet; further ones are closed."""

    frame_bytes: int = 100 * 1024 * 1024
    in_flight: int = 5
    waiting: int = 128


DEFAULT_LIMITS = Limits()


class Codec(Protocol[Q, R]):
    """Messages of one protocol as bytes. `correlation_id`: counts the requests of a connection; a reply has that of
    its request. `malformed`: what its decoders raise for bytes that are no message; the connection then ends."""

    @property
    def malformed(self) -> tuple[type[Exception], ...]: ...
    def encode_request(self, correlation_id: int, request: Q) -> Frame: ...
    def decode_request(self, frame: Frame) -> tuple[int, Q]: ...
    def encode_reply(self, correlation_id: int, request: Q, reply: R) -> Frame: ...
    def decode_reply(self, request: Q, frame: Frame) -> tuple[int, R]: ...


class NetworkError(Exception):
    """`peer`: the address, or who is on the other side."""

    def __init__(self, peer: Address | str, why: str) -> None:
        super().__init__(f"{type(self).__name__}: {peer}: {why}")
        self.peer = peer
        self.why = why


class CannotConnect(NetworkError):
    """No connection came about: nobody listens there, there is no such host, or no answer came in time."""


class CannotListen(NetworkError):
    """The port is in use, or may not be used."""


class ConnectionLost(NetworkError):
    """The connection has ended. The outcome of requests that were sent and not answered is unknown."""


class ProtocolViolated(ConnectionLost):
    """The other side sent what it may not, such as a frame that cannot be read or is too long. The connection was
    reset."""


class RequestTimedOut(ConnectionLost):
    """No reply came in time, and the connection was closed for that. The outcome is unknown."""


class ConnectionClosed(NetworkError):
    """The connection had ended before; nothing was sent."""


class TooManyRequests(NetworkError):
    """As many requests as the limit allows have no reply yet; nothing was sent."""


class FrameTooLarge(NetworkError):
    """A message is longer than the limit; nothing was sent."""


class Connection(Protocol[Q_contra, R]):
    """A client's end. It lasts until it is closed or lost, and is never made anew."""

    @property
    def address(self) -> Address: ...
    @property
    def in_flight(self) -> int:
        """Requests that have no reply yet."""
        ...

    @property
    def ended(self) -> Future[str]:
        """Done when the connection is lost or closed; says why."""
        ...

    def request(self, request: Q_contra, *, timeout_us: int | None = None) -> Future[R]:
        """Send a request. Fails with ConnectionLost, RequestTimedOut (the connection is closed, and all its requests
        fail), and definitely with ConnectionClosed, TooManyRequests, FrameTooLarge. Raises what the codec raises for
        a message that cannot be written."""
        ...

    def send(self, request: Q_contra) -> Future[None]:
        """Send a request that gets no reply (Kafka's acks=0). Done when there is room for another one, or the
        connection is lost. Errors as of `request`, the definite ones."""
        ...

    def close(self) -> None:
        """What was sent still arrives. Again: nothing happens."""
        ...


class ServerConnection(Protocol[Q, R_contra]):
    """A server's end."""

    @property
    def peer(self) -> str:
        """Who is on the other side, for logs."""
        ...

    @property
    def ended(self) -> Future[str]:
        """Done when the connection is lost or closed; says why. A loss is noticed while a request is asked for."""
        ...

    @property
    def leaving(self) -> Future[str]:
        """Done when the other side sends no more, because it is gone, or has closed its half; says why. What it sent
        before can still be received. It is noticed while a request is in hand, unless more than that waits in the
        network, or the network is cut."""
        ...

    def receive(self) -> Future[Q]:
        """The next request; only now it is read. Fails with ConnectionLost, and with ProtocolViolated for a frame that
        cannot be read. If an earlier call has not been answered yet, its future is returned again."""
        ...

    def reply(self, reply: R_contra) -> Future[None]:
        """Answer the request that was received last; one that wants no answer needs none. Done when there is room for
        another reply, or the connection is lost: await it before the next `receive`. Fails with ConnectionClosed and
        FrameTooLarge. Raises what the codec raises for a message that cannot be written."""
        ...

    def close(self, why: str = "closed by the server") -> None:
        """What was sent still arrives. Again: nothing happens."""
        ...


class Listener(Protocol[Q, R]):
    @property
    def address(self) -> Address:
        """Where clients reach it."""
        ...

    def accept(self) -> Future[ServerConnection[Q, R]]:
        """The next connection. If an earlier call has not been answered yet, its future is returned again."""
        ...

    def close(self) -> None:
        """Take no more connections. Those that were taken stay; those that wait are closed."""
        ...


class Network(Protocol):
    """The network, as one process uses it."""

    def listen(self, codec: Codec[Q, R], *, port: int = 0, limits: Limits = DEFAULT_LIMITS) -> Future[Listener[Q, R]]:
        """Take connections. `port` 0: one that is free. Fails with CannotListen."""
        ...

    def connect(
        self, address: Address, codec: Codec[Q, R], *, timeout_us: int, limits: Limits = DEFAULT_LIMITS
    ) -> Future[Connection[Q, R]]:
        """Connect to a server. Fails with CannotConnect, after `timeout_us` at the latest."""
        ...
