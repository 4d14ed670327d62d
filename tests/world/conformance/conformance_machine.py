"""Random sessions against the model: hypothesis makes up the story, the model says what must come."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from conformance_harness import Harness
from conformance_model import CHILD, DATA, EXIST, Model
from conformance_strategies import SESSIONS_LIMIT, operations, paths, payloads, picks, places, reads, versions, watches
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import (
    ConnectionLoss,
    MultiRefused,
    NoNode,
    SessionClosed,
    SessionExpired,
    ZooKeeperError,
)
from rebalance_lab.world.ports import (
    GetRead,
    Node,
    ReadOperation,
    SessionEventKind,
    Stat,
    WatchEvent,
    WriteOperation,
    ZooKeeper,
)

somebody_connected = precondition(lambda self: self._some(connected=True))
somebody_away = precondition(lambda self: self._some(connected=False))


class Client:
    """A session, the watches it waits for, and what it has asked for while away."""

    def __init__(self, name: str, session: ZooKeeper) -> None:
        self.name = name
        self.session = session
        self.watches: dict[tuple[str, str], Future[WatchEvent]] = {}
        self.asked: list[tuple[Future[Any], Callable[[], object]]] = []


class Machine(RuleBasedStateMachine):
    """Each rule asks the real thing, asks the model, and compares; then all watches are compared."""

    make: Callable[[], Harness]

    def __init__(self) -> None:
        super().__init__()
        self.h = type(self).make()
        self.model = Model()
        self.clients: list[Client] = []
        self.opened = 0
        self.h.step(self.h.make_root())

    def teardown(self) -> None:
        try:
            self.h.step(self._finish())
        finally:
            self.h.end()

    async def _finish(self) -> None:
        self._compare_log()
        await self.h.close_all()

    def step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        async def bounded() -> None:
            async with self.h.kernel.timeout(20_000_000, "one rule"):
                await coroutine
                await self._compare_watches()

        self.h.step(bounded())

    # -- picking ----------------------------------------------------------------------------

    def _some(self, *, connected: bool) -> list[Client]:
        return [each for each in self.clients if self.model.sessions[each.name].connected is connected]

    def _picked(self, pick: int, *, connected: bool = True) -> Client:
        fitting = self._some(connected=connected)
        return fitting[pick % len(fitting)]

    def _full(self, path: str) -> str:
        return self.h.root + path

    # -- sessions ---------------------------------------------------------------------------

    @initialize()
    def open_the_first_sessions(self) -> None:
        for _ in range(2):
            self.step(self._open())

    @rule(
        pick=picks,
        act=st.sampled_from(["break", "away", "back", "back", "lose", "lose many", "open", "close", "expire"]),
        path=paths,
        many=operations,
    )
    def session_life(self, pick: int, act: str, path: str, many: list[WriteOperation]) -> None:
        """One rule for all of it: most rules are to read and write."""
        connected, away = self._some(connected=True), self._some(connected=False)
        if act == "open" and len(self.clients) < SESSIONS_LIMIT:
            self.step(self._open())
        elif act == "back" and away:
            self.step(self._come_back(away[pick % len(away)]))
        elif act == "expire" and away:
            self.step(self._expire(away[pick % len(away)], connected=False))
        elif len(connected) > 1:
            client = connected[pick % len(connected)]
            if act == "break":
                self.step(self._break(client))
            elif act == "away":
                self.step(self._go_away(client))
            elif act == "lose":
                self.step(self._create_and_lose_the_reply(client, path))
            elif act == "lose many":
                self.step(self._multi_and_lose_the_reply(client, many))
            elif act == "close":
                self.step(self._close(client))
            elif act == "expire":
                self.step(self._expire(client, connected=True))

    async def _open(self) -> None:
        session = await self.h.connected()
        self.opened += 1
        client = Client(f"s{self.opened}", session)
        self.model.opened(client.name)
        self.clients.append(client)

    async def _close(self, client: Client) -> None:
        self.clients.remove(client)
        self.h.sessions.remove(client.session)
        await client.session.close()
        # Its own ephemeral znodes go first: whether it is told of them is the wire's luck.
        for watch in client.watches.values():
            assert watch.done and (watch.error is None or isinstance(watch.error, SessionClosed))
        self.model.ended(client.name)

    async def _break(self, client: Client) -> None:
        await self.h.break_connection(client.session)
        self.model.sessions[client.name].connected = False
        await self.h.expect(client.session, SessionEventKind.CONNECTED)
        self.model.reconnected(client.name)

    async def _go_away(self, client: Client) -> None:
        await self.h.away(client.session)
        self.model.sessions[client.name].connected = False

    async def _come_back(self, client: Client) -> None:
        await self.h.back(client.session)
        self.model.reconnected(client.name)
        asked, client.asked = client.asked, []
        for future, expected in asked:
            await self._check(future, expected())

    async def _expire(self, client: Client, *, connected: bool) -> None:
        self.clients.remove(client)
        self.h.expire(client.session)
        self.h.release(client.session)
        if connected:
            await self.h.expect(client.session, SessionEventKind.DISCONNECTED)
        await self.h.expect(client.session, SessionEventKind.EXPIRED)
        self.model.ended(client.name)
        for future, _ in client.asked:
            assert isinstance(future.error, SessionExpired)
        for watch in client.watches.values():
            assert watch.done and (watch.error is None or isinstance(watch.error, SessionExpired))

    async def _create_and_lose_the_reply(self, client: Client, path: str) -> None:
        self.h.lose_next_reply(client.session)
        future = client.session.create(self._full(path), b"lost", ephemeral=True)
        await self._lose(
            client, future, lambda: self.model.create(client.name, path, b"lost", ephemeral=True, sequence=False)
        )

    async def _multi_and_lose_the_reply(self, client: Client, many: list[WriteOperation]) -> None:
        self.h.lose_next_reply(client.session)
        future = client.session.multi(self._placed(many))
        await self._lose(client, future, lambda: self.model.multi(client.name, many))

    async def _lose(self, client: Client, future: Future[Any], apply: Callable[[], object]) -> None:
        await self.h.expect(client.session, SessionEventKind.DISCONNECTED)
        assert isinstance(future.error, ConnectionLoss)
        assert not isinstance(future.error, MultiRefused)
        apply()  # done, or refused: its watches were told before the reply that got lost
        self.model.sessions[client.name].connected = False
        await self.h.expect(client.session, SessionEventKind.CONNECTED)
        self.model.reconnected(client.name)

    # -- writes -----------------------------------------------------------------------------

    @somebody_connected
    @rule(
        pick=picks, path=paths, data=payloads, ephemeral=st.booleans(), sequence=st.sampled_from([False, False, True])
    )
    def create(self, pick: int, path: str, data: bytes, ephemeral: bool, sequence: bool) -> None:
        client = self._picked(pick)
        future = client.session.create(self._full(path), data, ephemeral=ephemeral, sequence=sequence)
        expected = self.model.create(client.name, path, data, ephemeral=ephemeral, sequence=sequence)
        self.step(self._check(future, expected))

    @somebody_connected
    @rule(pick=picks, path=places, data=payloads, version=versions)
    def set(self, pick: int, path: str, data: bytes, version: int) -> None:
        client = self._picked(pick)
        future = client.session.set(self._full(path), data, version=version)
        self.step(self._check(future, self.model.set(path, data, version)))

    @somebody_connected
    @rule(pick=picks, path=paths, version=versions)
    def delete(self, pick: int, path: str, version: int) -> None:
        client = self._picked(pick)
        future = client.session.delete(self._full(path), version=version)
        self.step(self._check(future, self.model.delete(path, version)))

    @somebody_connected
    @rule(pick=picks, many=operations)
    def multi(self, pick: int, many: list[WriteOperation]) -> None:
        client = self._picked(pick)
        future = client.session.multi(self._placed(many))
        self.step(self._check(future, self.model.multi(client.name, many)))

    def _placed(self, many: list[WriteOperation]) -> list[WriteOperation]:
        """The operations below the root of this run."""
        return [replace(operation, path=self._full(operation.path)) for operation in many]

    @somebody_away
    @rule(pick=picks, path=paths, ephemeral=st.booleans())
    def ask_for_a_create_while_away(self, pick: int, path: str, ephemeral: bool) -> None:
        client = self._picked(pick, connected=False)
        future = client.session.create(self._full(path), b"late", ephemeral=ephemeral)
        client.asked.append(
            (
                future,
                lambda: self.model.create(client.name, path, b"late", ephemeral=ephemeral, sequence=False),
            )
        )

    async def _check(self, future: Future[Any], expected: Any) -> None:
        """The reply is what the model expects: a path, a version, nothing, or an error's class."""
        try:
            value: object = self._plain((await future).value)
        except MultiRefused as refused:
            value = (refused.index, type(refused.reason))
        except ZooKeeperError as error:
            value = type(error)
        assert value == expected, f"{future!r} gave {value}, the model says {expected}"

    def _plain(self, value: Any) -> object:
        if isinstance(value, tuple):
            return tuple(self._plain(each) for each in value)
        if isinstance(value, str):
            return value.removeprefix(self.h.root)
        return value.version if isinstance(value, Stat) else value

    # -- reads ------------------------------------------------------------------------------

    @somebody_connected
    @rule(pick=picks, path=places, watch=watches, table=st.sampled_from([DATA, CHILD, EXIST]))
    def read(self, pick: int, path: str, watch: bool, table: str) -> None:
        self.step(self._read_and_compare(self._picked(pick), path, watch, table))

    @somebody_connected
    @rule(pick=picks, path=places)
    def watch_the_children(self, pick: int, path: str) -> None:
        self.step(self._read_and_compare(self._picked(pick), path, True, CHILD))

    @somebody_connected
    @rule(pick=picks, many=reads)
    def multi_read(self, pick: int, many: list[ReadOperation]) -> None:
        self.step(self._multi_read_and_compare(self._picked(pick), many))

    async def _multi_read_and_compare(self, client: Client, many: list[ReadOperation]) -> None:
        placed = [replace(read, path=self._full(read.path)) for read in many]
        found = (await client.session.multi_read(placed)).value
        for read, result in zip(many, found, strict=True):
            node = self.model.nodes.get(read.path)
            if node is None:
                assert isinstance(result, NoNode)
            elif isinstance(read, GetRead):
                assert isinstance(result, Node)
                assert (result.data, result.stat.version) == (node.data, node.version)
            else:
                assert result == self.model.names(read.path)

    async def _read_and_compare(self, client: Client, path: str, watch: bool, table: str) -> None:
        session, full = client.session, self._full(path)
        ask: Any = {DATA: session.get, CHILD: session.children, EXIST: session.exists}[table]
        node = self.model.nodes.get(path)
        future: Future[Any] = ask(full, watch=watch)
        if node is None and table != EXIST:
            await self._check(future, NoNode)
            return
        reply = await future
        if node is None:
            assert reply.value is None
        else:
            stat = reply.value if table == EXIST else reply.value.stat
            owner = 0 if node.owner is None else self._session_id(node.owner)
            names = self.model.names(path)
            assert (stat.version, stat.cversion) == (node.version, 2 * node.creations - len(names))
            assert (stat.num_children, stat.data_length, stat.ephemeral_owner) == (len(names), len(node.data), owner)
            if table == DATA:
                assert reply.value.data == node.data
            elif table == CHILD:
                assert reply.value.names == names
        if watch:
            armed = (DATA if table == EXIST and node is not None else table, path)
            known = client.watches.get(armed)
            assert known is None or known.done or known is reply.watch, "one future serves all"
            client.watches[armed] = reply.watch
            self.model.arm(client.name, *armed)

    def _session_id(self, name: str) -> int:
        return next(each.session.session_id for each in self.clients if each.name == name)

    # -- comparing --------------------------------------------------------------------------

    async def _compare_watches(self) -> None:
        """A read is a barrier: when it is answered, all earlier events have come."""
        for client in self.clients:
            state = self.model.sessions[client.name]
            if state.connected:
                await client.session.exists(self.h.root)
                state.seen = self.model.clock
            told = {key: watch.result().kind for key, watch in client.watches.items() if watch.done}
            assert told == state.told, f"{client.name} was told {told}, the model says {state.told}"
            for key in told:
                assert client.watches.pop(key).result().path == self._full(key[1])
            state.told.clear()
            assert set(client.watches) == state.armed

    def _compare_log(self) -> None:
        """The log, replayed, is the model's tree."""
        tree: dict[str, tuple[bytes, int]] = {"": (b"", 0)}
        for txn in self.h.transactions():
            path = txn.path.removeprefix(self.h.root)
            if txn.kind is TransactionKind.SESSION_CLOSED:
                assert txn.removed is not None, f"the log does not list what went with {txn.session_id:#x}"
                for gone in txn.removed:
                    if gone.startswith(f"{self.h.root}/"):
                        assert tree.pop(gone.removeprefix(self.h.root))[1] == txn.session_id
            elif not txn.path.startswith(f"{self.h.root}/") and txn.path != self.h.root:
                continue
            elif txn.kind is TransactionKind.CREATE:
                tree[path] = (txn.data, txn.session_id if txn.ephemeral else 0)
            elif txn.kind is TransactionKind.SET:
                tree[path] = (txn.data, tree[path][1])
            elif txn.kind is TransactionKind.DELETE:
                del tree[path]
        assert {path: data for path, (data, _) in tree.items()} == {
            path: node.data for path, node in self.model.nodes.items()
        }


def run(make: Callable[[], Harness], *, examples: int, phases: tuple[Phase, ...]) -> None:
    machine = type("MachineHere", (Machine,), {"make": staticmethod(make)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            phases=phases,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
