"""What ZooKeeper's own Java client (3.4.6 and 3.8.4, at DEBUG) logs of each request and its reply."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: The log has neither the parts of a multi nor whether it succeeded.
MULTI = "multi"

#: ZooKeeper's opcodes, and what the lab calls the operations.
OPERATIONS = {
    1: "create",
    2: "delete",
    3: "exists",
    4: "get",
    5: "set",
    8: "children",
    12: "children",
    14: MULTI,
    15: "create",
    -11: "close",
}

#: Error codes that a consumer can get, and the lab's names for them (`world.errors`).
ERRORS = {
    -4: "ConnectionLoss",
    -101: "NoNode",
    -108: "NoChildrenForEphemerals",
    -110: "NodeExists",
    -111: "NotEmpty",
    -112: "SessionExpired",
}

_NO_NODE = -101

_REPLY = re.compile(
    r"Reading reply session ?id: ?(0x[0-9a-f]+), packet:: .*? header:: (-?\d+),(-?\d+) "
    r" replyHeader:: -?\d+,(-?\d+),(-?\d+) {1,2}request:: (.*?) {1,2}response:: ?(.*)$"
)
_FIRED = re.compile(r"Got WatchedEvent state:\w+ type:(\w+) path:(\S+) for session ?id (0x[0-9a-f]+)$")
_OPENED = re.compile(r"Session establishment complete on server .*, session ?id = (0x[0-9a-f]+), negotiated")
_CHILDREN = re.compile(r"v\{(.*?)\}")

_WATCH_EVENTS = {
    "NodeCreated": "created",
    "NodeDeleted": "deleted",
    "NodeDataChanged": "changed",
    "NodeChildrenChanged": "child",
}


@dataclass(frozen=True, slots=True)
class Packet:
    """One request and its reply. `error`: the lab's name of the error; None if the request succeeded, which includes an
    `exists` that found nothing. `zxid`: the server's latest when it replied. `names`: the children in a list."""

    session: int
    operation: str
    path: str
    watch: bool
    zxid: int
    error: str | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fired:
    """A watch that fired. `event`: created, deleted, changed, child."""

    session: int
    path: str
    event: str


def opened(message: str) -> int | None:
    """The session id of a line that reports a new connection, else None."""
    found = _OPENED.match(message)
    return None if found is None else int(found[1], 16)


def fired(message: str) -> Fired | None:
    """The watch of a line that reports one, else None (also for session events)."""
    found = _FIRED.match(message)
    if found is None or found[1] not in _WATCH_EVENTS:
        return None
    return Fired(int(found[3], 16), found[2], _WATCH_EVENTS[found[1]])


def packet(message: str) -> Packet | None:
    """The packet of a line that reports one, else None (also for pings and watches that are set again)."""
    found = _REPLY.match(message)
    if found is None or int(found[3]) not in OPERATIONS:
        return None
    session, _xid, opcode, zxid, code, request, response = found.groups()
    operation, error = OPERATIONS[int(opcode)], int(code)
    path, _, rest = request.removeprefix("'").partition(",")
    names = _CHILDREN.match(response) if operation == "children" else None
    done = error == 0 or (operation == "exists" and error == _NO_NODE)
    return Packet(
        session=int(session, 16),
        operation=operation,
        path=path if path.startswith("/") else "",
        watch=operation in {"exists", "get", "children"} and rest.strip() == "T",
        zxid=int(zxid),
        error=None if done else ERRORS.get(error, f"code {error}"),
        names=() if names is None else tuple(sorted(each.removeprefix("'") for each in names[1].split(",") if each)),
    )
