"""A simulated server: its connections, its watches, and the znodes as it has applied them.

It answers reads from the writes that it has applied. The leader decides writes (`ensemble`). When a server applies a
write, it first fires the watches and then answers the client. So the answer to a read follows, on its connection,
every watch event of an earlier change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.errors import BadArguments, NoNode
from rebalance_lab.world.ports import GetRead
from rebalance_lab.world.simulated.audit import ImpossibleWorld
from rebalance_lab.world.simulated.authority import Outcome
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.sessions import ServerSession, SessionTable
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.simulated.watches import Watches
from rebalance_lab.world.zk.messages import (
    PONG,
    WRITES,
    Answer,
    Connect,
    Connected,
    Found,
    Operation,
    Ping,
    Request,
    ToServer,
    Value,
)

if TYPE_CHECKING:
    from rebalance_lab.world.simulated.ensemble import Ensemble


class ServerState(Enum):
    SERVING = "serving"
    LOOKING = "looking"  # for a leader, or for what it missed: connections are closed at once
    DOWN = "down"


#: state -> the states it may change to.
TRANSITIONS: dict[ServerState, frozenset[ServerState]] = {
    ServerState.SERVING: frozenset({ServerState.LOOKING, ServerState.DOWN}),
    ServerState.LOOKING: frozenset({ServerState.SERVING, ServerState.DOWN}),
    ServerState.DOWN: frozenset({ServerState.LOOKING}),
}


class Turn:
    """A message whose answer waits for those before it on its connection."""

    __slots__ = ("message", "outcome")

    def __init__(self, message: Request | Ping) -> None:
        self.message = message
        self.outcome: Outcome | None = None

    @property
    def writes(self) -> bool:
        return isinstance(self.message, Request) and self.message.operation in WRITES

    @property
    def closes(self) -> bool:
        return isinstance(self.message, Request) and self.message.operation is Operation.CLOSE


class Server:
    """The server's end of its links (`link.ServerEnd`).

    `number`: its id in the ensemble, from 1. `applied`: how many records of the log it has
    applied; `zxid` that of the last. `term` counts how often it lost its leader: what another
    server sent it in an earlier one is void.
    """

    def __init__(
        self, name: str, number: int, tree: Tree, sessions: SessionTable, random: RandomStream, ensemble: Ensemble
    ) -> None:
        self.name = name
        self.number = number
        self.tree = tree
        self.sessions = sessions
        self.watches = Watches()
        self.state = ServerState.SERVING
        self.paused = False
        self.term = 0
        self.zxid = 0
        self.applied = 0
        self.mail: list[Callable[[], None]] = []
        self._random = random
        self._ensemble = ensemble
        self._session_of: dict[Link, ServerSession] = {}
        self._turns: dict[Link, deque[Turn]] = {}
        self._open = True

    # -- the wire ---------------------------------------------------------------------------

    def arrived(self, link: Link, message: ToServer) -> None:
        if not self._open:
            self._arrived_closed(link, message)
            return
        if isinstance(message, Connect):
            link.accepted = True
            if message.zxid > self.zxid:  # "client must try another server"
                link.leave_as_server()
            else:
                self._ensemble.connect(self, link, message)
            return
        session = self._session_of.get(link)
        if session is None:  # its client is gone, and so is the session: this was still under way
            return
        self.sessions.hear(session, self._tells_us)
        turns = self._turns.get(link) if self._turns else None
        if turns is not None and (isinstance(message, Ping) or message.operation not in WRITES):
            turns.append(Turn(message))
        else:
            self._serve(link, session, message)

    def _arrived_closed(self, link: Link, message: ToServer) -> None:
        link.accepted |= self.state is not ServerState.DOWN
        if self.paused:
            self.mail.append(partial(self.arrived, link, message))
        else:
            link.leave_as_server()

    def ended(self, link: Link) -> None:
        if self.paused:
            self.mail.append(partial(self.ended, link))
            return
        session = self.detach(link)
        if session is not None:
            self.sessions.silent(session, self._tells_us)

    def _tells_us(self, heard_us: int) -> int:
        return self._ensemble.told_us(self, heard_us)

    def _serve(self, link: Link, session: ServerSession, message: Request | Ping) -> None:
        if isinstance(message, Request):
            self._HANDLERS[message.operation](self, link, session, message)
        elif message.answered:
            link.to_client(PONG)

    def answer(self, link: Link, session: ServerSession, request: Request, value: Value, code: int = 0) -> None:
        losing, process = self.sessions.losing, session.process
        if losing and process in losing and (not losing[process] or losing[process] in _created_path(value)):
            del losing[process]
            link.cut()
            return
        link.to_client(Answer(request.xid, self.zxid, code, value))

    # -- turns: a client's answers come in the order it asked ------------------------------

    def waits(self, link: Link) -> bool:
        """Something asked on this connection has no answer yet."""
        return link in self._turns

    def await_turn(self, link: Link, request: Request) -> Turn:
        """A write that is decided elsewhere; what comes after it on its connection waits."""
        turn = Turn(request)
        self._turns.setdefault(link, deque()).append(turn)
        return turn

    def decided(self, link: Link, turn: Turn, outcome: Outcome) -> None:
        """A write of this server's client was decided, and applied here."""
        turn.outcome = outcome
        turns = self._turns.get(link)
        session = self._session_of.get(link)
        if turns is None or session is None:
            return
        while turns and (not turns[0].writes or turns[0].outcome is not None):
            first = turns.popleft()
            if first.outcome is None:
                self._serve(link, session, first.message)
            else:
                assert isinstance(first.message, Request)
                self.answer(link, session, first.message, first.outcome.value, first.outcome.code)
        if not turns:
            self._turns.pop(link, None)

    def doubt(self) -> None:
        """Those whose answers wait will hear nothing for a while."""
        for link in self._turns:
            link.doubt()

    # -- sessions ---------------------------------------------------------------------------

    @property
    def clients(self) -> dict[Link, ServerSession]:
        """The connections that have a session; look, do not touch."""
        return self._session_of

    def attach(self, link: Link, session: ServerSession) -> None:
        """The session's client is connected here from now."""
        self._session_of[link] = session
        self.sessions.attach(session, link, self._tells_us)
        link.to_client(Connected(session.id, session.timeout_ms))

    def refuse_dead(self, link: Link, session_id: int) -> None:
        """Tell a client that its session has ended."""
        link.to_client(Connected(session_id, 0))
        link.leave_as_server()

    def closes(self, session: ServerSession) -> None:
        """The session is about to end of the servers' own accord. The events of its own ephemeral znodes
        are queued on its connection just before that is closed; a real server (3.9.3) still sent them
        in 56 of 120 expiries. Only a client that is awake reads them (see `session.woke`).
        """
        if session.link is not None and self._random.bits(1):
            self.watches.drop(session.link)

    def leave(self, session: ServerSession) -> None:
        """Close the session's connection."""
        if session.link is not None:
            link = session.link
            self.detach(link)
            link.leave_as_server()

    def detach(self, link: Link) -> ServerSession | None:
        """Forget a connection; the session it had, if any."""
        self.watches.drop(link)
        self._turns.pop(link, None)
        session = self._session_of.pop(link, None)
        if session is not None and session.link is link:
            session.link = None
        return session

    def client_silent(self, link: Link) -> int | None:
        """The client's process was paused, or cannot reach us: since when nothing was heard of the
        link's session, in µs; None when it has none."""
        session = self._session_of.get(link)
        if session is None:
            return None
        self.sessions.silent(session, self._tells_us, mute=self.paused)
        return session.heard_us

    def pinged_us(self, link: Link) -> int | None:
        """When the link's session was last heard; None when it has none."""
        session = self._session_of.get(link)
        return None if session is None else self.sessions.pinged_us(session)

    # -- life -------------------------------------------------------------------------------

    def change(self, new: ServerState) -> None:
        assert new in TRANSITIONS[self.state], f"server {self.name} is {self.state.value}; cannot become {new.value}"
        self.state = new
        self._open = new is ServerState.SERVING and not self.paused

    def hold(self, *, paused: bool) -> None:
        """Its process is paused, or goes on."""
        self.paused = paused
        self._open = self.state is ServerState.SERVING and not paused

    def drop_clients(self, *, reset: bool) -> None:
        """End all connections: closed, or reset as those of a process that dies are."""
        self.term += 1
        self.mail.clear()
        for link in tuple(self._session_of):
            session = self.detach(link)
            if session is not None and session.id in self.sessions.living:
                self.sessions.silent(session, self._tells_us, mute=True)
            if reset:
                link.cut()
            else:
                link.leave_as_server()
        self._turns.clear()

    # -- applying ---------------------------------------------------------------------------

    def committed(self, zxid: int, applied: int, records: tuple[Transaction, ...]) -> None:
        """A write that the authority did on this server's own znodes."""
        self.zxid, self.applied = zxid, applied
        for record in records:
            self.watches.fire(record)

    def ended_session(self, zxid: int, applied: int, paths: list[str]) -> None:
        """Likewise, a session's end; `paths` went with it."""
        self.zxid, self.applied = zxid, applied
        for path in paths:
            self.watches.deleted(path)

    def catch_up(self, log: list[Transaction], applied: int, zxid: int) -> None:
        """Apply the log up to `applied` records, the last of them at `zxid`."""
        while self.applied < applied:
            record = log[self.applied]
            self.applied += 1
            self._apply(record)
        self.zxid = max(self.zxid, zxid)

    def _apply(self, record: Transaction) -> None:
        tree = self.tree
        if record.kind is TransactionKind.CREATE:
            owner = record.session_id if record.ephemeral else 0
            if record.path in tree.nodes:  # only the planted bug two-owners does that
                tree.remove(record.path, record.zxid)
            tree.create(record.path, record.data, owner, False, record.zxid, record.wall_ms)
        elif record.kind is TransactionKind.SET:
            tree.set(record.path, record.data, -1, record.zxid, record.wall_ms)
        elif record.kind is TransactionKind.DELETE:
            tree.delete(record.path, -1, record.zxid)
        elif record.kind is TransactionKind.SESSION_CLOSED:
            self._close(record)
        self.watches.fire(record)

    def _close(self, record: Transaction) -> None:
        """A session's end. Raises ImpossibleWorld where this server removes other znodes than the
        log lists, which are those that the leader removed."""
        removed = self.tree.close(record.session_id, record.zxid)
        if tuple(removed) != record.removed:
            raise ImpossibleWorld(
                f"at the end of session {record.session_id:#x} server {self.name} removed {removed},"
                f" and its leader {record.removed}"
            )
        for path in removed:
            self.watches.deleted(path)

    # -- reads ------------------------------------------------------------------------------

    def _write(self, link: Link, session: ServerSession, request: Request) -> None:
        self._ensemble.write(self, link, session, request)

    def _read(self, link: Link, session: ServerSession, request: Request) -> None:
        operation = request.operation
        exists = operation is Operation.EXISTS
        if exists and "\0" in request.path:  # the other reads do not check their path
            self.answer(link, session, request, None, BadArguments.code)
            return
        node = self.tree.nodes.get(request.path)
        if request.watch and (exists or node is not None):  # exists sets one on a missing znode too
            table = self.watches.child if operation is Operation.CHILDREN else self.watches.data
            table.add(request.path, link)
        if node is None:
            self.answer(link, session, request, None, NoNode.code)
        elif exists:
            self.answer(link, session, request, node.stat())
        else:
            self.answer(link, session, request, node.node() if operation is Operation.GET else node.children())

    def _multi_read(self, link: Link, session: ServerSession, request: Request) -> None:
        """Each read has its own result: one that fails does not affect the others."""
        found: list[Found] = []
        for read in request.reads:
            node = self.tree.nodes.get(read.path)
            if node is None:
                found.append(NoNode.code)
            else:
                found.append(node.node() if isinstance(read, GetRead) else node.children().names)
        self.answer(link, session, request, tuple(found))

    def _set_watches(self, link: Link, session: ServerSession, request: Request) -> None:
        assert request.rearm is not None, "SetWatches without its lists"
        self.watches.rearm(self.tree, link, request.rearm)
        self.answer(link, session, request, None)

    _HANDLERS: ClassVar = {
        **dict.fromkeys(WRITES, _write),
        **dict.fromkeys((Operation.GET, Operation.CHILDREN, Operation.EXISTS), _read),
        Operation.MULTI_READ: _multi_read,
        Operation.SET_WATCHES: _set_watches,
    }


def _created_path(value: Value) -> str:
    """In the answer to a create, or to a multi that begins with one; empty in other answers. Only a path is a text."""
    first = value[0] if isinstance(value, tuple) and value else value
    return first if isinstance(first, str) else ""
