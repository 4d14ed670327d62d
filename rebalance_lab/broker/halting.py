"""A broker that halts before an operation of its controller, so that a trial can kill or pause it exactly there.

An operation is a request to ZooKeeper, or a request to a broker. They are counted from the moment in which the broker
sees that `/lab_halt` names it; the znode also says which operation is not carried out any more, nor any after it. The
rest of the broker goes on until it is killed. Of requests that are sent again each time counts. A broker may also hold
these operations back until the znode is gone, as a process that was paused carries out what it was about to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from controller.channels import Deliver
from controller.cluster import LiveBroker
from controller.request_batch import ControlRequest
from rebalance_lab.broker.server import Report
from rebalance_lab.kernel import Future, Mailbox
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.ports import (
    Children,
    Node,
    ReadOperation,
    ReadResult,
    Reply,
    SessionEvent,
    SessionState,
    Stat,
    WriteOperation,
    WriteResult,
    ZooKeeper,
)
from rebalance_lab.zkclient.pipelined import PipelinedClient

T = TypeVar("T")

#: The znode that names the broker and its last operation. It is the lab's own.
HALT = "/lab_halt"

#: What a broker reports: it counts from now on; each operation that it carries out; it halts.
COUNTS, OPERATION, HALTS = REPORTS = ("counts operations", "operation", "halts")


class Order(msgspec.Struct, frozen=True):
    """What `/lab_halt` holds. `at`: the number of the operation that is not carried out, from 1; 0: it only counts.
    `before`: or the first whose name, with a comma at its end, has this in it (`set /controller_epoch,`). `holds`: it
    is carried out, with all that come after it, when the znode is gone. `fails`: but then it fails in a way that the
    controller does not expect.
    """

    broker: int
    at: int = 0
    before: str | None = None
    holds: bool = False
    fails: bool = False


def halt_payload(order: Order) -> bytes:
    """`/lab_halt`."""
    return msgspec.json.encode(order)


class OperationFailed(Exception):
    """An operation has failed in a way that nobody expects, because the trial has it so."""


class Halt:
    """Counts the operations of one broker's controller. `report` takes what is in COUNTS, OPERATION and HALTS."""

    def __init__(self, broker_id: int, report: Report) -> None:
        self._broker_id = broker_id
        self._report = report
        self._order: Order | None = None
        self._count = 0
        self._halted = False
        self._released: Future[None] = Future("the end of a halt")

    async def follow(self, client: PipelinedClient) -> None:
        """Wait for `/lab_halt`, and count if it names this broker. Raises SessionExpired."""
        there = await client.ask(lambda session: session.exists(HALT, watch=True))
        if there.value is None:
            if self._order is not None and self._order.holds:
                self._release()  # it went while this broker had no session
            assert there.watch is not None
            await there.watch
        node = (await client.ask(lambda session: session.get(HALT))).value
        order = msgspec.json.decode(node.data, type=Order)
        if order.broker != self._broker_id:
            return
        self._order = order
        until = f"until operation {order.before or order.at}" if order.before or order.at else "all of them"
        self._report(COUNTS, {"message": until})
        if order.holds:
            gone = await client.ask(lambda session: session.exists(HALT, watch=True))
            if gone.value is not None:
                assert gone.watch is not None
                await gone.watch
            self._release()

    def _release(self) -> None:
        self._order = None
        self._released.set(None)

    def passes(self, what: Callable[[], str]) -> bool:
        """Whether an operation is carried out. `what`: names it."""
        if self._order is None:
            return True
        if self._halted:
            return False
        self._count += 1
        name, before = what(), self._order.before
        self._halted = self._count == self._order.at or (before is not None and before in f"{name},")
        self._report(HALTS if self._halted else OPERATION, {"number": self._count, "message": name})
        return not self._halted

    def held(self, ask: Callable[[], Future[T]]) -> Future[T]:
        """The answer to an operation that is carried out when the halt is over; never if it is not."""
        answer: Future[T] = Future("the answer to an operation of a controller that has halted")
        order = self._order

        def go_on(_released: Future[None]) -> None:
            if order is not None and order.fails:
                answer.fail(OperationFailed("the lab has this operation fail"))
            else:
                ask().on(partial(_pass_on, answer))

        self._released.on(go_on)
        return answer

    async def over(self) -> None:
        """Done when the halt is over; never if it is not."""
        await self._released

    def session(self, inner: ZooKeeper) -> ZooKeeper:
        """A session for the controller."""
        return _HaltingSession(inner, self)

    def deliver(self, inner: Deliver) -> Deliver:
        """A way to the brokers for the controller."""

        async def deliver(broker: LiveBroker, request: ControlRequest) -> Message:
            name = type(request).__name__.removesuffix("Request")
            if not self.passes(lambda: f"{name} to broker {broker.broker_id}"):
                await self.over()
            return await inner(broker, request)

        return deliver


class _HaltingSession:
    """The port `ZooKeeper` around another session. What does not pass is held."""

    def __init__(self, inner: ZooKeeper, halt: Halt) -> None:
        self._inner = inner
        self._halt = halt

    @property
    def session_id(self) -> int:
        return self._inner.session_id

    @property
    def state(self) -> SessionState:
        return self._inner.state

    @property
    def negotiated_timeout_ms(self) -> int:
        return self._inner.negotiated_timeout_ms

    @property
    def events(self) -> Mailbox[SessionEvent]:
        return self._inner.events

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> Future[Reply[str]]:
        ask = partial(self._inner.create, path, data, ephemeral=ephemeral, sequence=sequence)
        return self._asked(lambda: f"create {path}", ask)

    def get(self, path: str, *, watch: bool = False) -> Future[Reply[Node]]:
        return self._asked(lambda: f"get {path}", partial(self._inner.get, path, watch=watch))

    def children(self, path: str, *, watch: bool = False) -> Future[Reply[Children]]:
        return self._asked(lambda: f"children {path}", partial(self._inner.children, path, watch=watch))

    def exists(self, path: str, *, watch: bool = False) -> Future[Reply[Stat | None]]:
        return self._asked(lambda: f"exists {path}", partial(self._inner.exists, path, watch=watch))

    def set(self, path: str, data: bytes, *, version: int = -1) -> Future[Reply[Stat]]:
        return self._asked(lambda: f"set {path}", partial(self._inner.set, path, data, version=version))

    def delete(self, path: str, *, version: int = -1) -> Future[Reply[None]]:
        return self._asked(lambda: f"delete {path}", partial(self._inner.delete, path, version=version))

    def multi(self, operations: Sequence[WriteOperation]) -> Future[Reply[tuple[WriteResult, ...]]]:
        return self._asked(lambda: f"multi: {_named(operations)}", partial(self._inner.multi, operations))

    def multi_read(self, reads: Sequence[ReadOperation]) -> Future[Reply[tuple[ReadResult, ...]]]:
        return self._asked(lambda: f"multi-read: {_named(reads)}", partial(self._inner.multi_read, reads))

    def close(self) -> Future[None]:
        return self._inner.close()

    def _asked(self, what: Callable[[], str], ask: Callable[[], Future[T]]) -> Future[T]:
        return ask() if self._halt.passes(what) else self._halt.held(ask)


def _named(operations: Sequence[WriteOperation] | Sequence[ReadOperation]) -> str:
    return ", ".join(f"{type(each).__name__.lower()} {each.path}" for each in operations)


def _pass_on(answer: Future[T], done: Future[T]) -> None:
    if done.error is None:
        answer.set(done.result())
    else:
        answer.fail(done.error)
