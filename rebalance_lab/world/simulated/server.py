"""The simulated server: requests in, transactions and answers out.

One request is processed at one instant, as in a standalone ZooKeeper 3.9: a write takes a zxid
even when it is refused, is logged, fires its watches, and is answered, in this order. A reader's
answer therefore follows, on its connection, every watch that an earlier change fired.
"""

from __future__ import annotations

from typing import ClassVar

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.errors import BadArguments, NoNode
from rebalance_lab.world.ports import GetRead
from rebalance_lab.world.simulated.authority import Authority
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.messages import (
    Answer,
    Connect,
    Connected,
    Found,
    Operation,
    Request,
    ToServer,
    Value,
)
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.settings import ServerSettings
from rebalance_lab.world.simulated.watches import Watches


class Server:
    """The server's end of all links (`link.ServerEnd`)."""

    def __init__(self, kernel: Kernel, settings: ServerSettings, random: RandomStream, plant: str | None) -> None:
        self.authority = Authority(kernel, settings, random, plant, self.expire)
        self.tree = self.authority.tree
        self.sessions = self.authority.sessions
        self.watches = Watches()
        self._random = random
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
        link.to_client(Answer(request.xid, self.authority.zxid, code, value))

    # -- sessions ---------------------------------------------------------------------------

    def _connect(self, link: Link, message: Connect) -> None:
        if message.session_id == 0:
            session = self.authority.open(message.timeout_ms)
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
        for path in self.authority.end(session, cxid):
            self.watches.deleted(path)

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

    def _write(self, link: Link, session: ServerSession, request: Request) -> None:
        outcome = self.authority.write(session, request)
        for record in outcome.records:
            self.watches.fire(record)
        self._answer(link, session, request, outcome.value, outcome.code)

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

    def _multi_read(self, link: Link, session: ServerSession, request: Request) -> None:
        """Each read for itself: one that fails does not concern the others."""
        found: list[Found] = []
        for read in request.reads:
            node = self.tree.nodes.get(read.path)
            if node is None:
                found.append(NoNode.code)
            else:
                found.append(node.node() if isinstance(read, GetRead) else node.children().names)
        self._answer(link, session, request, tuple(found))

    def _set_watches(self, link: Link, session: ServerSession, request: Request) -> None:
        assert request.rearm is not None, "SetWatches without its lists"
        self.watches.rearm(self.tree, link, request.rearm)
        self._answer(link, session, request, None)

    _HANDLERS: ClassVar = {
        Operation.CREATE: _write,
        Operation.SET: _write,
        Operation.DELETE: _write,
        Operation.MULTI: _write,
        Operation.GET: _get,
        Operation.CHILDREN: _children,
        Operation.EXISTS: _exists,
        Operation.MULTI_READ: _multi_read,
        Operation.SET_WATCHES: _set_watches,
        Operation.CLOSE: _close,
    }
