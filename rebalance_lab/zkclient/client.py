"""ZkClient 0.3 (`com.101tec:zkclient`), as Kafka 0.8 used it, over the ZooKeeper port.

The original has two threads: ZooKeeper's own, which only queues events, and a second one, which takes them from the
queue and calls listeners, one at a time. Here each is a task. A session's expiry is hidden: a new session is opened,
and operations go on in it.

Two things are simpler than in the original:

- Its operations are synchronous calls of ZooKeeper's, which return when the sending thread has the
  reply, so the event of an earlier change may be queued just after. Here it is queued before. No caller
  in Kafka looks at the queue, and listeners run later, on the other thread, in both: what happens here
  can happen there.
- Its `close` interrupts the thread of the listeners and waits for its end, for at most 2 s (`join(2000)`),
  before it closes the session. A listener that waits for Kafka's rebalance lock, which a shutdown
  holds, cannot be interrupted: that member's session ends 2 s later than it would here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.kernel import Future, Mailbox, Scope, Task, TaskCancelled, TimedOut
from rebalance_lab.world.errors import ConnectionLoss, NodeExists, NoNode, SessionExpired, ZooKeeperError
from rebalance_lab.world.ports import (
    Children,
    Environment,
    GetRead,
    Node,
    Reply,
    SessionEventKind,
    SessionState,
    Stat,
    WatchEvent,
    WatchKind,
    ZooKeeper,
)
from rebalance_lab.zkclient.listeners import (
    ChildListener,
    DataListener,
    Notification,
    StateListener,
    ZkTimeoutException,
)

T = TypeVar("T")
L = TypeVar("L")

#: The original's queue has no limit. A watch fires once until it is set again, so more than
#: this many waiting calls would mean that the event task stands still.
QUEUE_LIMIT = 10_000

_CHILD_EVENTS = (WatchKind.CHILD, WatchKind.CREATED, WatchKind.DELETED)
_DATA_EVENTS = (WatchKind.CHANGED, WatchKind.CREATED, WatchKind.DELETED)


@dataclass(frozen=True, slots=True)
class ZkSettings:
    """Where and how to connect; `member` is the name its events carry."""

    connect: str
    session_timeout_ms: int
    member: str
    group: str | None = None


class ZkClient:
    """A ZooKeeper client that never gives up (ZkClient 0.3).

    Operations retry forever after ConnectionLoss and SessionExpired, as in the original. So a member without ZooKeeper
    hangs instead of failing. Other errors of `world.errors` are raised.

    Any read of a path that has listeners sets a watch, as in the original.
    """

    def __init__(self, environment: Environment, settings: ZkSettings, scope: Scope) -> None:
        self._environment = environment
        self._tasks = environment.tasks
        self._settings = settings
        self._scope = scope
        self._session: ZooKeeper | None = None
        self._changed: Future[None] = Future("session event")
        self._children: dict[str, list[ChildListener]] = {}
        self._data: dict[str, list[DataListener]] = {}
        self._states: list[StateListener] = []
        self._armed: list[Future[WatchEvent]] = []
        self._last_event: dict[str, WatchEvent] = {}
        self._queue: Mailbox[Notification] = Mailbox(f"events of {settings.member}", QUEUE_LIMIT)
        self._running: list[Task[None]] = []
        self._closed = False

    # -- life -------------------------------------------------------------------------------

    async def connect(self, timeout_ms: int) -> None:
        """Open the session and start both tasks. Raises ZkTimeoutException."""
        assert self._session is None, "connect once"
        self._open()
        self._running = [
            self._scope.spawn(self._follow_sessions(), f"{self._settings.member}-zookeeper"),
            self._scope.spawn(self._run_events(), f"{self._settings.member}-zkclient-events"),
        ]
        try:
            async with self._tasks.timeout(timeout_ms * 1000, "zookeeper.connection.timeout.ms"):
                await self._until_connected()
        except TimedOut:
            await self.close()
            raise ZkTimeoutException(f"Unable to connect to zookeeper server within timeout: {timeout_ms}") from None

    async def close(self) -> None:
        """Stop both tasks, also in the middle of a listener, and end the session."""
        if self._closed or self._session is None:
            return
        self._closed = True
        for task in self._running:
            task.cancel("ZkClient closes", origin=self)
        for task in self._running:
            try:
                await task
            except TaskCancelled:
                continue
        await self._session.close()

    @property
    def session(self) -> ZooKeeper:
        """The session of now; another one after an expiry."""
        assert self._session is not None, "connect first"
        return self._session

    def _open(self) -> None:
        settings = self._settings
        self._session = self._environment.zookeeper.open(settings.connect, settings.session_timeout_ms)

    # -- operations -------------------------------------------------------------------------

    async def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> None:
        """Raises NoNode without a parent, NodeExists."""
        await self._retry(lambda session: session.create(path, data, ephemeral=ephemeral))

    async def create_persistent(self, path: str, *, parents: bool = False) -> None:
        """Without data. With `parents` what is missing is made, and what exists is fine; else
        raises NoNode, NodeExists."""
        try:
            await self.create(path, b"")
        except NodeExists:
            if not parents:
                raise
        except NoNode:
            parent = path[: path.rindex("/")]
            if not parents or not parent:
                raise
            await self.create_persistent(parent, parents=True)
            await self.create_persistent(path, parents=True)

    async def read(self, path: str) -> Node:
        """Raises NoNode."""
        return await self._retry(lambda session: session.get(path, watch=self.has_listeners(path)))

    async def read_all(self, paths: Sequence[str]) -> tuple[Node | ZooKeeperError, ...]:
        """In one request, each with its own error (NoNode), and without watches: no listener may
        be on these paths. The original cannot do it."""
        reads = [GetRead(path) for path in paths]
        results = await self._retry(lambda session: session.multi_read(reads))
        return tuple(result for result in results if not isinstance(result, tuple))

    async def children(self, path: str) -> Children:
        """Raises NoNode."""
        return await self._retry(lambda session: session.children(path, watch=self.has_listeners(path)))

    async def exists(self, path: str) -> Stat | None:
        return await self._retry(lambda session: session.exists(path, watch=self.has_listeners(path)))

    async def delete(self, path: str) -> bool:
        """Whatever the version, the data and the session. False when it was not there."""
        try:
            await self._retry(lambda session: session.delete(path))
        except NoNode:
            return False
        return True

    async def _retry(self, operation: Callable[[ZooKeeper], Future[Reply[T]]]) -> T:
        while True:  # endless as in the original: see the class
            session = self.session
            try:
                reply = await operation(session)
            except SessionExpired:
                await self._until_connected(gone=session)
            except ConnectionLoss:
                await self._until_connected()
            else:
                if reply.watch is not None:
                    self._arm(reply.watch)
                return reply.value

    async def _until_connected(self, gone: ZooKeeper | None = None) -> None:
        """Wait for a session that is connected, and is not the one that is `gone`."""
        while self._session is gone or self.session.state is not SessionState.CONNECTED:
            await self._changed

    # -- listeners --------------------------------------------------------------------------

    def has_listeners(self, path: str) -> bool:
        return path in self._children or path in self._data

    async def subscribe_child_changes(self, path: str, listener: ChildListener) -> tuple[str, ...] | None:
        """Add a listener, with two reads: exists and children. Returns the children, or None if there is no znode; the
        listener is called when it is created. A listener is added only once."""
        self._add(self._children, path, listener)
        return await self._look(path)

    async def subscribe_data_changes(self, path: str, listener: DataListener) -> None:
        """Add a listener, with one read: exists. So the znode need not exist yet."""
        self._add(self._data, path, listener)
        await self.exists(path)

    def subscribe_state_changes(self, listener: StateListener) -> None:
        if listener not in self._states:
            self._states.append(listener)

    def unsubscribe_all(self) -> None:
        """No listener is called any more, except by notifications that are already queued."""
        self._children.clear()
        self._data.clear()
        self._states.clear()

    @staticmethod
    def _add(listeners: dict[str, list[L]], path: str, listener: L) -> None:
        known = listeners.setdefault(path, [])
        if listener not in known:
            known.append(listener)

    async def _look(self, path: str) -> tuple[str, ...] | None:
        """Set both watches again. The one of exists hears a missing znode come back."""
        await self.exists(path)
        try:
            return (await self.children(path)).names
        except NoNode:
            return None

    # -- the task that hears ZooKeeper ------------------------------------------------------

    async def _follow_sessions(self) -> None:
        while True:
            event = await self.session.events.get()
            if event.kind is SessionEventKind.EXPIRED:
                self._renew()
            changed, self._changed = self._changed, Future("session event")
            changed.set(None)

    def _renew(self) -> None:
        """In the original's order: open a new session, queue the state listeners, then every other listener once,
        because the changes that the lost watches would have reported are unknown."""
        self._open()
        self._last_event.clear()
        for listener in self._states:
            self._enqueue("New session event", "", listener.handle_new_session)
        for path in self._children:
            self._fire_children(path)
        for path in self._data:
            self._fire_data(path)

    def _arm(self, watch: Future[WatchEvent]) -> None:
        """Listen to a watch, once: all reads that watch the same thing share one future."""
        if watch in self._armed:
            return
        self._armed.append(watch)
        watch.on(self._watch_ended)

    def _watch_ended(self, watch: Future[WatchEvent]) -> None:
        self._armed.remove(watch)
        if watch.error is None and not self._closed:
            self._heard(watch.result())

    def _heard(self, event: WatchEvent) -> None:
        """One event of the server may complete several watches (a deletion those of data and of children), but
        ZkClient's single watcher gets it once."""
        if self._last_event.get(event.path) == event:
            return
        self._last_event[event.path] = event
        if event.kind in _CHILD_EVENTS and event.path in self._children:
            self._fire_children(event.path)
        if event.kind in _DATA_EVENTS and event.path in self._data:
            self._fire_data(event.path)

    def _fire_children(self, path: str) -> None:
        for listener in self._children[path]:
            self._enqueue(f"Children of {path} changed", path, partial(self._tell_children, path, listener))

    def _fire_data(self, path: str) -> None:
        for listener in self._data[path]:
            self._enqueue(f"Data of {path} changed", path, partial(self._tell_data, path, listener))

    def _enqueue(self, what: str, path: str, call: Callable[[], Awaitable[None]]) -> None:
        queued = self._emit(Kind.NOTIFICATION_QUEUED, {"path": path, "what": what})
        self._queue.put(Notification(what, path, queued, call))

    # -- the task that calls listeners ------------------------------------------------------

    async def _run_events(self) -> None:
        while True:
            notification = await self._queue.get()
            try:
                await notification.call()
            except Exception as error:  # as in the original: logged, and the next one is taken
                self._emit(Kind.WARNED, {"message": f"Error handling event ZkEvent[{notification.what}]: {error}"})
            self._emit(Kind.NOTIFICATION_HANDLED, {"path": notification.path, "of": notification.queued[1]})

    async def _tell_children(self, path: str, listener: ChildListener) -> None:
        await listener.handle_child_change(path, await self._look(path))

    async def _tell_data(self, path: str, listener: DataListener) -> None:
        await self.exists(path)
        try:
            data = (await self.read(path)).data
        except NoNode:
            await listener.handle_data_deleted(path)
        else:
            await listener.handle_data_change(path, data)

    def _emit(self, kind: Kind, detail: dict[str, object]) -> EventId:
        settings = self._settings
        return self._environment.recorder.emit(
            Layer.OP, kind, member=settings.member, group=settings.group, detail=detail
        )
