"""kazoo's own client as a second opinion: an adapter to as much of the port as it can serve.

What it cannot: zxids of replies (-1 here), watches that survive a lost connection, replies and
watches in the order of the wire, and one watch for all who ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from conformance_embedded import RealServerHarness
from kazoo.client import KazooClient
from kazoo.exceptions import RolledBackError, RuntimeInconsistency, ZookeeperError
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat

from rebalance_lab.kernel import Future, Mailbox
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.errors import ConnectionLoss, MultiRefused, error_for
from rebalance_lab.world.ports import (
    Check,
    Children,
    Create,
    Delete,
    Node,
    ReadOperation,
    ReadResult,
    Reply,
    SessionEvent,
    SessionEventKind,
    SessionState,
    Set,
    Stat,
    WatchEvent,
    WatchKind,
    WriteOperation,
    WriteResult,
    ZooKeeper,
)

_KINDS = {
    EventType.CREATED: WatchKind.CREATED,
    EventType.DELETED: WatchKind.DELETED,
    EventType.CHANGED: WatchKind.CHANGED,
    EventType.CHILD: WatchKind.CHILD,
}

#: What kazoo says of operations that were undone, or not looked at, because of another.
_UNDONE = (RolledBackError, RuntimeInconsistency)


class KazooSession:
    """One KazooClient, told of on the loop of a live kernel."""

    def __init__(self, lab: LiveKernel, connect: str, timeout_ms: int) -> None:
        self.state = SessionState.CONNECTING
        self.session_id = 0
        self.events: Mailbox[SessionEvent] = Mailbox("session events of kazoo", 1_000)
        self._lab = lab
        self._closing: Future[None] | None = None
        self.client = KazooClient(
            hosts=connect,
            timeout=timeout_ms / 1000,
            connection_retry={"max_tries": -1, "delay": 0.01, "backoff": 1, "max_delay": 0.02},
        )
        self.client.add_listener(lambda state: self._on_loop(self._changed, state))
        self.client.start_async()

    def _on_loop(self, callback: Callable[..., object], *args: object) -> None:
        """From kazoo's threads; what comes after the story has ended is of no interest."""
        if not self._lab.loop.is_closed():
            self._lab.loop.call_soon_threadsafe(callback, *args)

    @property
    def negotiated_timeout_ms(self) -> int:
        raise NotImplementedError("kazoo keeps what the server granted to itself")

    def _changed(self, state: str) -> None:
        if self._closing is not None:
            return
        if state == KazooState.CONNECTED:
            assert self.client.client_id is not None
            self.session_id = self.client.client_id[0]
            self._tell(SessionState.CONNECTED, SessionEventKind.CONNECTED)
        elif state == KazooState.SUSPENDED:
            self._tell(SessionState.CONNECTING, SessionEventKind.DISCONNECTED)
        else:
            self._tell(SessionState.EXPIRED, SessionEventKind.EXPIRED)
            self.close()  # or kazoo would go on under another session

    def _tell(self, state: SessionState, kind: SessionEventKind) -> None:
        self.state = state
        self.events.put(SessionEvent(kind, self.session_id))

    # -- operations -------------------------------------------------------------------------

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        asked = self.client.create_async(path, data, ephemeral=ephemeral, sequence=sequence)
        return self._replied("create", path, asked, str)

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        armed, callback = self._watch(watch)
        asked = self.client.get_async(path, watch=callback)
        return self._replied("get", path, asked, lambda value: Node(value[0], _stat(value[1])), armed)

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        armed, callback = self._watch(watch)
        asked = self.client.get_children_async(path, watch=callback, include_data=True)
        return self._replied(
            "children", path, asked, lambda value: Children(tuple(sorted(value[0])), _stat(value[1])), armed
        )

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        armed, callback = self._watch(watch)
        asked = self.client.exists_async(path, watch=callback)
        return self._replied("exists", path, asked, lambda value: None if value is None else _stat(value), armed)

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._replied("set", path, self.client.set_async(path, data, version), _stat)

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._replied("delete", path, self.client.delete_async(path, version), lambda _: None)

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        """kazoo answers a refused transaction with a list of errors: of those undone before the
        one that was refused, of that one, and of those nobody looked at."""
        transaction = self.client.transaction()
        for each in operations:
            match each:
                case Create():
                    transaction.create(each.path, each.data, ephemeral=each.ephemeral, sequence=each.sequence)
                case Set():
                    transaction.set_data(each.path, each.data, each.version)
                case Delete():
                    transaction.delete(each.path, each.version)
                case Check():
                    transaction.check(each.path, each.version)
        reply: Future[Reply[tuple[WriteResult, ...]]] = Future(("multi", len(operations)))

        def answered(asked: Any) -> None:
            if asked.exception is not None:
                error = asked.exception
                assert isinstance(error, ZookeeperError), error
                self._on_loop(reply.fail, error_for(error.code, "multi", "", session_id=self.session_id))
                return
            for index, result in enumerate(asked.value):
                if isinstance(result, ZookeeperError) and not isinstance(result, _UNDONE):
                    name, path = type(operations[index]).__name__.lower(), operations[index].path
                    reason = error_for(result.code, name, path, session_id=self.session_id)
                    self._on_loop(reply.fail, MultiRefused(index, reason))
                    return
            self._on_loop(reply.set, Reply(tuple(_written(each) for each in asked.value), -1))

        transaction.commit_async().rawlink(answered)
        return reply

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        raise NotImplementedError("kazoo has no multi-read")

    def close(self) -> Future[None]:
        if self._closing is None:
            closing = self._closing = Future("close of kazoo")

            def ended() -> None:
                if self.state is not SessionState.EXPIRED:
                    self.state = SessionState.CLOSED
                closing.set(None)

            def stop() -> None:  # waits for its threads, and for the proxy, which is on the loop
                self.client.stop()
                self.client.close()
                self._on_loop(ended)

            self._lab.loop.run_in_executor(None, stop)
        return self._closing

    # -- answers ----------------------------------------------------------------------------

    def _watch(self, wanted: bool) -> tuple[Future[WatchEvent] | None, Callable[[WatchedEvent], None] | None]:
        if not wanted:
            return None, None
        armed: Future[WatchEvent] = Future("watch of kazoo")

        def fired(event: WatchedEvent) -> None:
            if event.type == EventType.NONE:  # the connection is lost, and with it the watch
                self._on_loop(armed.fail, ConnectionLoss("watch", "", session_id=self.session_id))
            else:
                self._on_loop(armed.set, WatchEvent(_KINDS[event.type], event.path, -1))

        return armed, fired

    def _replied(
        self,
        operation: str,
        path: str,
        asked: Any,
        read: Callable[[Any], Any],
        armed: Future[WatchEvent] | None = None,
    ) -> Future[Reply[Any]]:
        reply: Future[Reply[Any]] = Future((operation, path))

        def answered(result: Any) -> None:
            error = result.exception
            if error is None:
                self._on_loop(reply.set, Reply(read(result.value), -1, armed))
            else:
                assert isinstance(error, ZookeeperError), error
                self._on_loop(reply.fail, error_for(error.code, operation, path, session_id=self.session_id))

        asked.rawlink(answered)
        return reply


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(*stat)


def _written(result: Any) -> WriteResult:
    """One result of a transaction: a path, a stat, or nothing (kazoo has True there)."""
    if isinstance(result, ZnodeStat):
        return _stat(result)
    return result if isinstance(result, str) else None


class KazooHarness(RealServerHarness):
    kind = "kazoo"

    def _connect(self, connect: str, timeout_ms: int) -> ZooKeeper:
        return KazooSession(self.lab, connect, timeout_ms)

    def _password(self, session: ZooKeeper) -> bytes:
        assert isinstance(session, KazooSession)
        return bytes(session.client._session_passwd)
