"""Ending a session behind its client's back: expiry of a member that is alive and connected.

A second connection shows the session's id and password, so that the server moves the session to
it, and closes it there. The client finds its connection closed, connects again and is told that
its session has expired: just what a real expiry looks like from its side.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass

from rebalance_lab.world.live import codec

TIMEOUT_S = 5.0

_FRAME_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What proves that a session is one's own, and the server it is connected to."""

    host: str
    port: int
    session_id: int
    password: bytes
    timeout_ms: int


class Usurped(Exception):
    """The session could not be closed from outside."""


def close_session(loop: asyncio.AbstractEventLoop, credentials: Credentials) -> None:
    """Close the session on a connection of our own, in a thread: the loop's own sessions go on.
    A failure ends the kernel's run, through the loop's exception handler."""
    loop.run_in_executor(None, end_session, credentials).add_done_callback(lambda ended: ended.result())


def end_session(credentials: Credentials) -> None:
    """Close the session on a connection of our own, and wait for it. Raises Usurped, OSError."""
    with socket.create_connection((credentials.host, credentials.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(codec.connect_frame(0, credentials.timeout_ms, credentials.session_id, credentials.password))
        frame = _receive(connection)
        welcome = codec.read_welcome(frame, 0, len(frame))
        if welcome.session_id != credentials.session_id or welcome.timeout_ms <= 0:
            raise Usurped(f"session {credentials.session_id:#x} had ended before it could be closed from outside")
        connection.sendall(codec.close_session().frame(1))
        _receive(connection)


def _receive(connection: socket.socket) -> bytes:
    (length,) = _FRAME_LENGTH.unpack(_exactly(connection, _FRAME_LENGTH.size))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(size)
        if not part:
            raise Usurped("the server closed the second connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
