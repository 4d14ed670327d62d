"""What a world supplies to sessions: connections to servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from rebalance_lab.kernel import Kernel, Process
from rebalance_lab.world.ports import ReadOperation
from rebalance_lab.world.zk.messages import Connect, Request, ToServer

if TYPE_CHECKING:
    from rebalance_lab.world.zk.session import Session


class Connection(Protocol):
    """A client's connection to a server, or its attempt at one. `accepted`: the server's operating system took it;
    `sent_us`: when the client last sent anything; 0 where its pings do not depend on that."""

    @property
    def accepted(self) -> bool: ...
    @property
    def sent_us(self) -> int: ...
    @property
    def server(self) -> object: ...
    def to_server(self, message: ToServer) -> None: ...
    def heard_us(self, now_us: int) -> int:
        """When the client last got something by it."""
        ...

    def leave_as_client(self) -> None:
        """Close it. Its session hears no more of it."""
        ...


ServerT = TypeVar("ServerT")


class Transport(Protocol[ServerT]):
    """What a world gives the sessions of one process. `name`: the process's, for reports; `process`: the one that the
    sessions' timers belong to; `request_limit_bytes`: the longest request that a server takes (`jute.maxbuffer`)."""

    kernel: Kernel
    name: str
    request_limit_bytes: int

    @property
    def process(self) -> Process | None: ...
    def connect(self, session: Session[ServerT], server: ServerT, message: Connect) -> Connection:
        """Begin a connection, whose first message is `message`. Calls `limit_attempt` if the attempt may hang."""
        ...

    def request_bytes(self, request: Request) -> int:
        """The length of a request on the wire, without the length of its frame."""
        ...

    def in_requests(self, reads: Sequence[ReadOperation], prefix: str) -> Iterable[Sequence[ReadOperation]]:
        """The reads of a multi-read, in the requests that they take; at least one. `prefix`: the chroot, which each
        path will begin with."""
        ...

    def forget(self, session: Session[ServerT]) -> None:
        """The session is over."""
        ...
