"""The messages between a ZooKeeper client and a server: what ZooKeeper's client protocol says, without its bytes.

The simulated network carries these objects, frozen and never copied; `zk.codec` turns them into frames and back.
They are msgspec structs, which are made several times faster than frozen dataclasses: each operation of a trial makes
some. They cannot hold a reference cycle, so Python's garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from rebalance_lab.world.ports import Children, Node, ReadOperation, Stat, WatchKind, WriteOperation


class Operation(IntEnum):
    """What a client may ask for; the values are ZooKeeper's opcodes."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET = 4
    SET = 5
    CHILDREN = 12
    MULTI = 14
    MULTI_READ = 22
    SET_WATCHES = 101
    CLOSE = -11


#: The xid of SetWatches; those of other requests count from 1 to XID_LIMIT. Java's client gives SetWatches this number,
#: too (SendThread.primeConnection), and replaces it by the next of the others when it sends it
#: (ClientCnxnSocketNIO.doIO of 3.4.6). Here it keeps its own, by which the proxy knows its answer.
SET_WATCHES_XID = -8
XID_LIMIT = 0x7FFFFFFF

#: Requests that the leader decides; a server answers all others by itself.
WRITES = frozenset({Operation.CREATE, Operation.DELETE, Operation.SET, Operation.MULTI, Operation.CLOSE})


class Connect(msgspec.Struct, frozen=True, gc=False):
    """The first message of a connection; `session_id` 0 asks for a new session. `zxid`: the last one that the client
    has seen, 0 for none: a server that is behind it does not take the client. `password`: the session's; simulated
    servers ask for none."""

    session_id: int
    timeout_ms: int
    zxid: int
    password: bytes = b""


class Connected(msgspec.Struct, frozen=True, gc=False):
    """Its answer; `timeout_ms` 0 says that the session has expired."""

    session_id: int
    timeout_ms: int
    password: bytes = b""


class AuthRefused(msgspec.Struct, frozen=True, gc=False):
    """The server does not accept the client's authentication (`live.security`)."""


class Ping(msgspec.Struct, frozen=True, gc=False):
    """A sign of life. The simulator sends it only after a pause and while a connection is in trouble. `answered`: the
    server answers with a Pong, as a real one always does."""

    answered: bool


class Pong(msgspec.Struct, frozen=True, gc=False):
    """The answer to a ping."""


class Rearm(msgspec.Struct, frozen=True, gc=False):
    """The watches of a client that comes back, as SetWatches lists them, and the last zxid it saw."""

    relative_zxid: int
    data: tuple[str, ...]
    exist: tuple[str, ...]
    child: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, gc=False):
    """`path` and those of `writes` and `reads` are the server's: the chroot is in them."""

    xid: int
    operation: Operation
    path: str
    watch: bool = False
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False
    sequence: bool = False
    rearm: Rearm | None = None
    writes: tuple[WriteOperation, ...] = ()
    reads: tuple[ReadOperation, ...] = ()


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The value of the answer to a multi that was refused: which of its operations was the first,
    and ZooKeeper's error code."""

    index: int
    code: int


#: One result of a multi-read: a node, the names of children, or ZooKeeper's error code.
Found = Node | tuple[str, ...] | int

#: One result of a multi: the created path, a Stat, or nothing.
Done = str | Stat | None

#: What an answer may hold: the created path, a node, a list of children, a stat, nothing, or the
#: results of many operations.
Value = str | Node | Children | Stat | Refusal | tuple[Done, ...] | tuple[Found, ...] | None


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The reply to the request `xid`: `code` 0, or ZooKeeper's error code."""

    xid: int
    zxid: int
    code: int
    value: Value


class Fired(msgspec.Struct, frozen=True, gc=False):
    """A watch event."""

    kind: WatchKind
    path: str


ToServer = Connect | Request | Ping
ToClient = Connected | AuthRefused | Answer | Fired | Pong

PING = Ping(answered=False)
HEARTBEAT = Ping(answered=True)
PONG = Pong()
