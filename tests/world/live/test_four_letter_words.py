"""What a server answers to a four-letter word, whether or not it closes the connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from rebalance_lab.world.live.zookeeper_node import ask, command

NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"
SERVING = "Zookeeper version: 3.9.5\nZxid: 0x1\nMode: standalone\n"


@contextmanager
def answering(parts: tuple[str, ...], *, closes: bool) -> Iterator[int]:
    """The port of a server that answers one connection. It stays open if it is not closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                assert connection.recv(4) == b"srvr"
                for part in parts:
                    connection.sendall(part.encode())
                if not closes:
                    connection.recv(1)  # until the client closes it

        server = Thread(target=answer)
        server.start()
        yield listening.getsockname()[1]
        server.join()


@pytest.mark.parametrize(
    ("parts", "closes"), [((SERVING,), True), ((SERVING[:9], SERVING[9:]), True), ((NOT_SERVING,), False)]
)
def test_an_answer_is_whole(parts: tuple[str, ...], closes: bool) -> None:
    with answering(parts, closes=closes) as port:
        assert command("127.0.0.1", port, "srvr") == "".join(parts)
    with answering(parts, closes=closes) as port:
        assert asyncio.run(ask("127.0.0.1", port, "srvr")) == "".join(parts)


def test_an_answer_that_is_cut_off_is_waited_for() -> None:
    with answering((SERVING,), closes=False) as port, pytest.raises(TimeoutError):
        asyncio.run(ask("127.0.0.1", port, "srvr"))
