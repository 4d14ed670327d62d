"""Servers that are none: every command that connects gives up, says which address, and exits with 2."""

from __future__ import annotations

import os
import random
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest
from cli_tools import COMMAND, LIMIT_S

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

#: Far less than a frame of the length that a fake server announces.
MEMORY_LIMIT_BYTES = 300 << 20

_HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html></html>"
_RANDOM = random.Random(14).randbytes(1 << 16)


def _answers(data: bytes) -> Callable[[socket.socket], None]:
    """Sends the same to everyone who asks, and keeps the connection open."""

    def serve(connection: socket.socket) -> None:
        while connection.recv(1 << 16):
            connection.sendall(data)

    return serve


def _is_silent(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def _closes(connection: socket.socket) -> None:
    connection.close()


def _closes_when_asked(connection: socket.socket) -> None:
    connection.recv(1)


def _talks_http(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(_HTTP)


#: What each does with a connection.
FAKES: dict[str, Callable[[socket.socket], None]] = {
    "silent": _is_silent,
    "closes": _closes,
    "closes-when-asked": _closes_when_asked,
    "http": _talks_http,
    "random": _answers(_RANDOM),
    "huge-length": _answers(struct.pack(">i", 2**31 - 1) + bytes(1 << 16)),
    "negative-length": _answers(struct.pack(">i", -1)),
    "empty-frames": _answers(bytes(4) * 100),
}

#: Commands that connect, by the protocol they expect. {at} stands for the address.
OF_ZOOKEEPER = {
    "topics": ("topics", "--zookeeper", "{at}", "--fixture", "--create", "t", "--partitions", "1"),
    "join": (
        *("join", "--zookeeper", "{at}", "--group", "g", "--topic", "t"),
        *("--config", "zookeeper.connection.timeout.ms=2000"),
    ),
    "broker": ("broker", "--zookeeper", "{at}", "--data", "data", "--connection-timeout-ms", "2000"),
}
OF_KAFKA = {
    "topics": ("topics", "--bootstrap", "{at}", "--list"),
    "consume": ("consume", "--bootstrap", "{at}", "--topic", "t", "--timeout-ms", "2000"),
    "produce": ("produce", "--bootstrap", "{at}", "--topic", "t", "--timeout-ms", "2000"),
}

COMMANDS = (*OF_ZOOKEEPER.values(), *OF_KAFKA.values())


class FakeServer:
    """Does the same with every connection, each in a thread. `address`: where it listens."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._serve = serve
        self._connections: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._connections:
            each.close()

    @property
    def was_asked(self) -> bool:
        return bool(self._connections)

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._connections.append(connection)
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            self._serve(connection)
            connection.close()
        except OSError:  # the command has gone
            return


@dataclass(frozen=True, slots=True)
class Met:
    """How a command ended that met a fake server of its own, at `address`. `highest`: its memory at most, in bytes."""

    address: str
    was_asked: bool
    code: int
    out: str
    err: str
    highest: int


@pytest.fixture(scope="module", params=FAKES)
def met(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Met]:
    """What became of each command. All run at the same time, because they mostly wait."""
    meet = partial(_meet, FAKES[request.param], tmp_path_factory.mktemp("fake"))
    with ThreadPoolExecutor(len(COMMANDS)) as pool:
        return dict(zip(COMMANDS, pool.map(meet, COMMANDS), strict=True))


def _meet(serve: Callable[[socket.socket], None], folder: Path, arguments: tuple[str, ...]) -> Met:
    place = folder / "-".join(arguments[:2]).replace("--", "")
    place.mkdir()
    server = FakeServer(serve)
    try:
        with subprocess.Popen(
            [*COMMAND, *(each.format(at=server.address) for each in arguments)],
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(place)},
        ) as process:
            highest = _highest_memory(process)
            out, err = process.communicate()
        return Met(server.address, server.was_asked, process.returncode, out, err, highest)
    finally:
        server.close()


def _highest_memory(process: subprocess.Popen[str]) -> int:
    """Bytes, until the process ends. One that does not end in time is killed."""
    highest, give_up_s = 0, time.monotonic() + LIMIT_S
    watched = psutil.Process(process.pid)
    while process.returncode is None:
        try:
            highest = max(highest, watched.memory_info().rss)
            process.wait(0.05)
        except (subprocess.TimeoutExpired, psutil.NoSuchProcess):
            if time.monotonic() > give_up_s:
                process.kill()
    return highest


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: f"{each[0]}{each[1]}")
def test_a_server_that_is_none(met: dict[tuple[str, ...], Met], arguments: tuple[str, ...]) -> None:
    ended = met[arguments]
    assert ended.was_asked
    assert (ended.code, ended.out) == (2, ""), ended.err
    last = ended.err.splitlines()[-1]
    assert last.startswith("rebalance-lab: ")
    assert ended.address in last
    assert "Traceback" not in ended.err
    assert "unexpected" not in ended.err
    assert ended.highest < MEMORY_LIMIT_BYTES
