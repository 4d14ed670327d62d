"""The simulated server: requests in, transactions and answers out.

One request is processed at one instant, as in a standalone ZooKeeper 3.9: a write takes a zxid
even when it is refused, is logged, fires its watches, and is answered, in this order. A reader's
answer therefore follows, on its connection, every watch that an earlier change fired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.errors import BadArguments, NoNode
from rebalance_lab.world.simulated.audit import Audit
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.messages import Answer, Connect, Connected, Operation, Request, ToServer, Value
from rebalance_lab.world.simulated.sessions import ServerSession, SessionTable
from rebalance_lab.world.simulated.settings import ServerSettings, wall_ms
from rebalance_lab.world.simulated.tree import Refused, Tree
from rebalance_lab.world.simulated.watches import Watches

#: Planted bug: a create of an owner znode that exists succeeds, and logs no DELETE before it.
TWO_OWNERS = "two-owners"

PLANTS = (TWO_OWNERS,)


class Server:
    """The server's end of all links (`link.ServerEnd`)."""

    def __init__(self, kernel: Kernel, settings: ServerSettings, random: RandomStream, plant: str | None) -> None:
        if plant is not None and plant not in PLANTS:
            raise ValueError(f"the simulated server knows no planted bug {plant!r}; it knows {', '.join(PLANTS)}")
        self.zxid = 0
        self.tree = Tree()
        self.watches = Watches()
        self.sessions = SessionTable(kernel, settings, random, self.expire)
        self.transactions: list[Transaction] = []
        self.listeners: list[Callable[[Transaction], None]] = []
        self.audit = Audit(self.tree, self.sessions.living)
        self._now_us = kernel.now_us
        self._random = random
        self._plant = plant
        self._session_of: dict[Link, ServerSession] = {}

    # -- the wire ---------------------------------------------------------------------------

    def arrived(self, link: Link, message: ToServer) -> None:
        if isinstance(message, Connect):
            self._connect(link, message)
            return
        session = self._session_of.get(link)
        if session is None:  # its client is gone, and so is the session: this was still under way
            return
        self.sessions.hear(session)
        if isinstance(message, Request):
            self._HANDLERS[message.operation](self, link, session, message)

    def ended(self, link: Link) -> None:
        session = self._detach(link)
        if session is not None:
            self.sessions.silent(session)

    def _answer(self, link: Link, session: ServerSession, request: Request, value: Value, code: int = 0) -> None:
        if session.loses_next_reply:
            session.loses_next_reply = False
            link.cut()
            return
        link.to_client(Answer(request.xid, self.zxid, code, value))

    # -- sessions ---------------------------------------------------------------------------

    def _connect(self, link: Link, message: Connect) -> None:
        if message.session_id == 0:
            session = self.sessions.open(message.timeout_ms)
            self._commit(session.id, 0, TransactionKind.SESSION_OPENED, timeout_ms=session.timeout_ms)
        elif message.session_id in self.sessions.living:
            session = self.sessions.living[message.session_id]
            self._leave(session)
        else:
            link.to_client(Connected(message.session_id, 0))
            link.leave_as_server()
            return
        self._session_of[link] = session
        self.sessions.attach(session, link)
        link.to_client(Connected(session.id, session.timeout_ms))

    def _close(self, link: Link, session: ServerSession, request: Request) -> None:
        self._end(session, request.xid)
        self._answer(link, session, request, None)
        self._leave(session)

    def expire(self, session: ServerSession) -> None:
        """Close a session of the server's own accord: it timed out, or a fault wants it.

        The server closes the connection in the same instant. What it has just queued there, the
        events of the session's own ephemeral znodes, gets out or not: 20 of 40 times on a real one.
        """
        if session.link is not None and self._random.bits(1):
            self.watches.drop(session.link)
        self._end(session, 0)
        self._leave(session)

    def client_silent(self, link: Link) -> int | None:
        """The client's process was paused: since when nothing was heard of the link's session, in
        µs; None when it has none."""
        session = self._session_of.get(link)
        if session is None:
            return None
        self.sessions.silent(session)
        return session.heard_us

    def _end(self, session: ServerSession, cxid: int) -> None:
        """The session's last transaction: its ephemeral znodes go with it, by path."""
        self.sessions.drop(session)
        paths = sorted(session.ephemerals)
        zxid = self._commit(session.id, cxid, TransactionKind.SESSION_CLOSED)
        for path in paths:
            self.tree.remove(path, zxid)
        for path in paths:
            self.watches.deleted(path)
        self.audit.ended(session)

    def _leave(self, session: ServerSession) -> None:
        if session.link is not None:
            link = session.link
            self._detach(link)
            link.leave_as_server()

    def _detach(self, link: Link) -> ServerSession | None:
        self.watches.drop(link)
        session = self._session_of.pop(link, None)
        if session is not None:
            session.link = None
        return session

    # -- writes -----------------------------------------------------------------------------

    def _create(self, link: Link, session: ServerSession, request: Request) -> None:
        if self._plant == TWO_OWNERS:
            self._oust_owner(request.path)
        owner = session.id if request.ephemeral else 0
        try:
            path = self.tree.create(
                request.path, request.data, owner, request.sequence, self.zxid + 1, wall_ms(self._now_us())
            )
        except Refused as refused:
            self._refuse(link, session, request, refused)
            return
        if owner:
            session.ephemerals[path] = None
        self._commit(
            session.id, request.xid, TransactionKind.CREATE, path=path, data=request.data, ephemeral=request.ephemeral
        )
        self.watches.created(path)
        self._answer(link, session, request, path)

    def _oust_owner(self, path: str) -> None:
        node = self.tree.nodes.get(path)
        if node is not None and node.owner and "/owners/" in path:
            self.sessions.living[node.owner].ephemerals.pop(path)
            self.tree.remove(path, self.zxid)

    def _set(self, link: Link, session: ServerSession, request: Request) -> None:
        try:
            node = self.tree.set(request.path, request.data, request.version, self.zxid + 1, wall_ms(self._now_us()))
        except Refused as refused:
            self._refuse(link, session, request, refused)
            return
        self._commit(
            session.id, request.xid, TransactionKind.SET, path=request.path, data=request.data, version=node.version
        )
        self.watches.changed(request.path)
        self._answer(link, session, request, node.stat())

    def _delete(self, link: Link, session: ServerSession, request: Request) -> None:
        try:
            node = self.tree.delete(request.path, request.version, self.zxid + 1)
        except Refused as refused:
            self._refuse(link, session, request, refused)
            return
        if node.owner:
            del self.sessions.living[node.owner].ephemerals[request.path]
        self._commit(session.id, request.xid, TransactionKind.DELETE, path=request.path)
        self.watches.deleted(request.path)
        self._answer(link, session, request, None)

    def _refuse(self, link: Link, session: ServerSession, request: Request, refused: Refused) -> None:
        self._commit(session.id, request.xid, TransactionKind.ERROR, code=refused.code)
        self._answer(link, session, request, None, refused.code)

    def _commit(
        self,
        session_id: int,
        cxid: int,
        kind: TransactionKind,
        *,
        path: str = "",
        data: bytes = b"",
        ephemeral: bool = False,
        version: int = -1,
        timeout_ms: int = 0,
        code: int = 0,
    ) -> int:
        """Log a transaction under the next zxid, which is returned."""
        self.zxid += 1
        transaction = Transaction(
            zxid=self.zxid,
            session_id=session_id,
            cxid=cxid,
            wall_ms=wall_ms(self._now_us()),
            kind=kind,
            path=path,
            data=data,
            ephemeral=ephemeral,
            version=version,
            timeout_ms=timeout_ms,
            code=code,
        )
        self.transactions.append(transaction)
        self.audit.committed(transaction)
        for listener in self.listeners:
            listener(transaction)
        return self.zxid

    # -- reads ------------------------------------------------------------------------------

    def _get(self, link: Link, session: ServerSession, request: Request) -> None:
        node = self.tree.nodes.get(request.path)
        if node is None:
            self._answer(link, session, request, None, NoNode.code)
            return
        if request.watch:
            self.watches.data.add(request.path, link)
        self._answer(link, session, request, node.node())

    def _children(self, link: Link, session: ServerSession, request: Request) -> None:
        node = self.tree.nodes.get(request.path)
        if node is None:
            self._answer(link, session, request, None, NoNode.code)
            return
        if request.watch:
            self.watches.child.add(request.path, link)
        self._answer(link, session, request, node.children())

    def _exists(self, link: Link, session: ServerSession, request: Request) -> None:
        if "\0" in request.path:  # of the reads, this one alone looks
            self._answer(link, session, request, None, BadArguments.code)
            return
        if request.watch:  # armed on a missing znode too
            self.watches.data.add(request.path, link)
        node = self.tree.nodes.get(request.path)
        if node is None:
            self._answer(link, session, request, None, NoNode.code)
            return
        self._answer(link, session, request, node.stat())

    def _set_watches(self, link: Link, session: ServerSession, request: Request) -> None:
        assert request.rearm is not None, "SetWatches without its lists"
        self.watches.rearm(self.tree, link, request.rearm)
        self._answer(link, session, request, None)

    _HANDLERS: ClassVar = {
        Operation.CREATE: _create,
        Operation.SET: _set,
        Operation.DELETE: _delete,
        Operation.GET: _get,
        Operation.CHILDREN: _children,
        Operation.EXISTS: _exists,
        Operation.SET_WATCHES: _set_watches,
        Operation.CLOSE: _close,
    }
