"""The ports: all that protocol code may know of its world.

Protocol code receives an `Environment` and uses nothing else: no clock, no thread, no socket
of its own. Each port has one simulated and one live implementation; one conformance suite
(tests/world/conformance) holds both to the same behaviour. `world.network` has the port to a network,
`world.storage` that to a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec

from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.kernel import Future, Kernel, Mailbox, RandomStream
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.network import Network
from rebalance_lab.world.storage import Storage

T_co = TypeVar("T_co", covariant=True)


class Stat(msgspec.Struct, frozen=True, gc=False):
    """A znode's metadata, as ZooKeeper's Stat. Times are the server's wall clock in ms."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class WatchKind(Enum):
    """What happened to a watched znode; the values are ZooKeeper's event types."""

    CREATED = 1
    DELETED = 2
    CHANGED = 3
    CHILD = 4


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`zxid`: the last zxid the client had seen when the event came (events carry none of
    their own in ZooKeeper 3.5 to 3.8: the reply header holds -1)."""

    kind: WatchKind
    path: str
    zxid: int


class Reply(msgspec.Struct, Generic[T_co], frozen=True):
    """An answer: the value, the zxid of its reply header, and the watch if one was asked for.

    The watch future completes with a WatchEvent, or fails with SessionExpired or SessionClosed when its session ends
    first. All reads that watch the same thing share one future.
    """

    value: T_co
    zxid: int
    watch: Future[WatchEvent] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    data: bytes
    stat: Stat


class Children(msgspec.Struct, frozen=True, gc=False):
    """`names`: sorted, immutable, and shared between readers in the simulator."""

    names: tuple[str, ...]
    stat: Stat


class Create(msgspec.Struct, frozen=True, gc=False):
    """An operation of `multi`; its result is the path that was created."""

    path: str
    data: bytes
    ephemeral: bool = False
    sequence: bool = False


class Set(msgspec.Struct, frozen=True, gc=False):
    """An operation of `multi`; its result is the znode's new Stat."""

    path: str
    data: bytes
    version: int = -1


class Delete(msgspec.Struct, frozen=True, gc=False):
    """An operation of `multi`; its result is None."""

    path: str
    version: int = -1


class Check(msgspec.Struct, frozen=True, gc=False):
    """An operation of `multi`: the znode is there and has this version. Its result is None."""

    path: str
    version: int


class GetRead(msgspec.Struct, frozen=True, gc=False):
    """A read of `multi_read`; its result is a Node."""

    path: str


class ChildrenRead(msgspec.Struct, frozen=True, gc=False):
    """A read of `multi_read`; its result is the names of the children (a multi-read carries no
    Stat of its parents)."""

    path: str


WriteOperation = Create | Set | Delete | Check
WriteResult = str | Stat | None
ReadOperation = GetRead | ChildrenRead
ReadResult = Node | tuple[str, ...] | ZooKeeperError


class SessionState(Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    EXPIRED = "expired"
    CLOSED = "closed"


#: state -> the states it may change to. A lost connection leads back to CONNECTING. A session learns on a new
#: connection that it has expired, so a connected one does not become EXPIRED directly.
SESSION_TRANSITIONS: dict[SessionState, frozenset[SessionState]] = {
    SessionState.CONNECTING: frozenset({SessionState.CONNECTED, SessionState.EXPIRED, SessionState.CLOSED}),
    SessionState.CONNECTED: frozenset({SessionState.CONNECTING, SessionState.CLOSED}),
    SessionState.EXPIRED: frozenset(),
    SessionState.CLOSED: frozenset(),
}


class SessionEventKind(Enum):
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    kind: SessionEventKind
    session_id: int


class ZooKeeper(Protocol):
    """One ZooKeeper session, from its opening to its end. It reconnects by itself; it never
    becomes another session: after EXPIRED open a new one.

    Every operation returns at once with a future of a Reply. Futures fail with the errors of
    `world.errors`: definite ones (NoNode, NodeExists, BadVersion, NotEmpty,
    NoChildrenForEphemerals), ConnectionLoss (the outcome is unknown), SessionExpired and
    SessionClosed. Order: replies and watch events complete in the order of the wire, and when
    a reply completes, every watch that an earlier change fired has completed before. Java's
    callers of asynchronous operations have the same order, as its event thread completes both. Its
    synchronous calls do not: the sending thread wakes them directly (ClientCnxn.finishPacket),
    and the event thread may handle an earlier watch event after the call has returned.

    An operation asked for while disconnected waits for the next connection, and fails with
    ConnectionLoss if that attempt fails (as Java's client does).

    `events` holds Connected, Disconnected, Expired, in order; watches survive a reconnect
    within the session (SetWatches): a change made meanwhile fires them then.
    """

    @property
    def session_id(self) -> int: ...
    @property
    def state(self) -> SessionState: ...
    @property
    def negotiated_timeout_ms(self) -> int: ...
    @property
    def events(self) -> Mailbox[SessionEvent]: ...

    def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False
    ) -> Future[Reply[str]]: ...
    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]: ...
    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]: ...
    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]: ...
    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]: ...
    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]: ...
    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        """All of them in one transaction, or none: then it fails with MultiRefused, which names
        the first that was refused and why. Nothing at all to do is allowed."""
        ...

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        """Many reads in one request, without watches. Each has its own result, a Node, the names
        of the children, or the error of that read alone (NoNode). Fails with Unimplemented on a
        server before ZooKeeper 3.6."""
        ...

    def close(self) -> Future[None]:
        """End the session at the server; done when it answered, or the connection was lost."""
        ...


class ZooKeeperFactory(Protocol):
    def open(self, connect: str, session_timeout_ms: int) -> ZooKeeper:
        """Begin a session to `connect` (host:port, several by commas, optional /chroot).

        Returns at once, in state CONNECTING; the SessionEvent CONNECTED follows.
        """
        ...


class Clock(Protocol):
    def now_us(self) -> int:
        """Monotonic microseconds, comparable between the processes of a trial."""
        ...

    def wall_ms(self) -> int:
        """Epoch milliseconds, for payloads only."""
        ...


class RecorderPort(Protocol):
    def emit(
        self,
        layer: Layer,
        kind: Kind,
        *,
        member: str | None = None,
        session: int | None = None,
        group: str | None = None,
        generation: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        epoch: int | None = None,
        zxid: int | None = None,
        detail: dict[str, object] | None = None,
    ) -> EventId:
        """Write one event; its time is now and its cause the kernel's current stimulus."""
        ...


def life_seed(seed: int | str, next_n: int) -> int | str:
    """The seed of an actor's life that begins with event `next_n`. An actor that is started again draws other numbers,
    as another process does."""
    return seed if next_n == 0 else f"{seed}+{next_n}"


@dataclass(frozen=True, slots=True)
class Environment:
    """What one actor of a trial is given. `seed`: of its random streams (`life_seed`)."""

    actor: str
    host: str
    tasks: Kernel
    clock: Clock
    zookeeper: ZooKeeperFactory
    recorder: RecorderPort
    network: Network
    storage: Storage
    seed: int | str

    def random(self, purpose: str) -> RandomStream:
        """The actor's random stream for one purpose."""
        return RandomStream(self.seed, self.actor, purpose)
