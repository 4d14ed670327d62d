"""The broker's side of its connections (`kafka.network.SocketServer`, `kafka.server.KafkaRequestHandler`).

Each connection has one task: it reads a request, answers it, and only then reads the next. So a client that asks faster
than it is answered waits in the network, and no queue grows. A request that fails in an unexpected way closes its
connection and is reported; the broker lives on.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.dispatch import answer
from rebalance_lab.broker.refused import CloseConnection
from rebalance_lab.kernel import Cancelled, Kernel, Scope
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import ConnectionClosed, Listener, NetworkError, ServerConnection

Report = Callable[[str, dict[str, object]], None]


async def serve(tasks: Kernel, listener: Listener[Call, Message], parts: Callable[[], Parts], report: Report) -> None:
    """Take connections and answer their requests, until the listener is closed and all connections have ended.

    `parts()`: those of the broker now.
    """
    async with tasks.scope("connections") as scope:
        while True:
            try:
                connection = await listener.accept()
            except ConnectionClosed:
                return
            _begin(scope, connection, parts, report)


def _begin(
    scope: Scope, connection: ServerConnection[Call, Message], parts: Callable[[], Parts], report: Report
) -> None:
    scope.spawn(_answer_all(connection, parts, report), f"connection of {connection.peer}")


async def _answer_all(connection: ServerConnection[Call, Message], parts: Callable[[], Parts], report: Report) -> None:
    try:
        while True:
            request = await connection.receive()
            response = await answer(parts(), request)
            if response is not None:
                await connection.reply(response)
    except NetworkError:
        return
    except CloseConnection as why:
        _close(connection, str(why), report)
    except Cancelled:
        connection.close("the broker shuts down")
        raise
    except Exception as error:
        _close(connection, f"{type(error).__name__}: {error}", report)


def _close(connection: ServerConnection[Call, Message], why: str, report: Report) -> None:
    report("connection closed", {"peer": connection.peer, "why": why})
    connection.close(why)
