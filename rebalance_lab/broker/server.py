"""The broker's side of its connections (`kafka.network.SocketServer`, `kafka.server.KafkaRequestHandler`).

Each connection has one task: it reads a request, answers it, and only then reads the next. So a client that asks faster
than it is answered waits in the network, and no queue grows. A request that cannot be read, or fails in an unexpected
way, closes its connection and is reported; the broker lives on.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.dispatch import HANDLERS, answer
from rebalance_lab.broker.refused import CloseConnection
from rebalance_lab.kernel import Cancelled, Flag, Kernel, Scope, Task
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import ConnectionClosed, Listener, NetworkError, ProtocolViolated, ServerConnection

Report = Callable[[str, dict[str, object]], None]

#: In each period so many closed connections are reported one by one, and the others as a number.
REPORTED_EACH = 10
REPORT_PERIOD_S = 10


class Server:
    """Takes connections and answers their requests.

    `parts()`: those of the broker now. `max_connections`: more clients wait until a connection ends (Kafka's
    max.connections). `max_idle_ms`: a connection without a request for so long is closed; negative: never
    (connections.max.idle.ms).
    """

    def __init__(
        self,
        tasks: Kernel,
        parts: Callable[[], Parts],
        report: Report,
        max_connections: int = 2**31 - 1,
        max_idle_ms: int = -1,
    ) -> None:
        self._tasks = tasks
        self._parts = parts
        self._closings = Closings(tasks, report)
        self._max_connections = max_connections
        self._max_idle_us = max_idle_ms * 1000
        self._open = 0
        #: Those with a request in hand that ends with them.
        self._abandoned: set[ServerConnection[Call, Message]] = set()
        self._has_room = Flag("room for a connection")
        self._has_room.raise_()

    async def run(self, listener: Listener[Call, Message]) -> None:
        """Until the listener is closed and all connections have ended."""
        async with self._tasks.scope("connections") as scope:
            while True:
                await self._has_room.wait()
                try:
                    connection = await listener.accept()
                except ConnectionClosed:
                    return
                self._begin(scope, connection)

    def _begin(self, scope: Scope, connection: ServerConnection[Call, Message]) -> None:
        self._open += 1
        if self._open >= self._max_connections:
            self._has_room.clear()
        answering = scope.spawn(self._answer_all(connection), f"connection of {connection.peer}")
        answering.on(self._ended)
        connection.leaving.on(lambda _: self._left(connection, answering))

    def _left(self, connection: ServerConnection[Call, Message], answering: Task[None]) -> None:
        """A client has gone: nobody waits for the answer to a Fetch, which may be hours away (unlike Kafka's, which
        stays for its max_wait_ms)."""
        if connection in self._abandoned:
            answering.cancel("the client has gone")

    def _ended(self, _task: object) -> None:
        self._open -= 1
        self._has_room.raise_()

    async def _answer_all(self, connection: ServerConnection[Call, Message]) -> None:
        idle = _Idle(self._tasks, connection, self._max_idle_us)
        try:
            while True:
                request = await connection.receive()
                idle.since_us = None
                response = await self._answer(connection, request)
                idle.since_us = self._tasks.now_us()
                if response is not None:
                    await connection.reply(response)
        except ProtocolViolated as error:
            self._closings.add(connection.peer, error.why)
        except NetworkError:
            return
        except CloseConnection as why:
            self._close(connection, str(why))
        except Cancelled as cancelled:
            connection.close(cancelled.reason)
            raise
        except Exception as error:
            self._close(connection, f"{type(error).__name__}: {error}")
        finally:
            idle.stop()

    async def _answer(self, connection: ServerConnection[Call, Message], request: Call) -> Message | None:
        handler = HANDLERS.get(request.key)
        if handler is None or not handler.abandoned:
            return await answer(self._parts(), request)
        self._abandoned.add(connection)
        try:
            return await answer(self._parts(), request)
        finally:
            self._abandoned.discard(connection)

    def _close(self, connection: ServerConnection[Call, Message], why: str) -> None:
        self._closings.add(connection.peer, why)
        connection.close(why)


class _Idle:
    """Closes a connection without a request for too long. `since_us`: None while a request is in hand. It has one
    timer, which is set again only when it fires."""

    def __init__(self, tasks: Kernel, connection: ServerConnection[Call, Message], limit_us: int) -> None:
        self.since_us: int | None = tasks.now_us()
        self._tasks = tasks
        self._connection = connection
        self._limit_us = limit_us
        self._timer = None if limit_us < 0 else tasks.call_at(self.since_us + limit_us, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now_us = self._tasks.now_us()
        since_us = now_us if self.since_us is None else self.since_us
        if now_us - since_us >= self._limit_us:
            self._connection.close("idle for connections.max.idle.ms")
        else:
            self._timer = self._tasks.call_at(since_us + self._limit_us, self._look)


class Closings:
    """Reports which connections the broker closed, and why. Hostile clients must not fill the log."""

    def __init__(self, tasks: Kernel, report: Report) -> None:
        self._tasks = tasks
        self._report = report
        self._period_ends_us = 0
        self._in_period = 0
        self._last = ""

    def add(self, peer: str, why: str) -> None:
        now_us = self._tasks.now_us()
        if now_us >= self._period_ends_us:
            self._period_ends_us = now_us + REPORT_PERIOD_S * 1_000_000
            self._in_period = 0
        self._in_period += 1
        self._last = why
        if self._in_period <= REPORTED_EACH:
            self._report("connection closed", {"peer": peer, "why": why})
        elif self._in_period == REPORTED_EACH + 1:
            self._tasks.call_at(self._period_ends_us, self._sum_up)

    def _sum_up(self) -> None:
        self._report("connections closed", {"number": self._in_period - REPORTED_EACH, "why": self._last})
        self._period_ends_us = 0
