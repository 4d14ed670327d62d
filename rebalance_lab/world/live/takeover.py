"""End a session although its client lives and is connected, as the fault `expire` does.

A second connection presents the session's id and password, so the server moves the session to it and then closes it
there. The client's own connection is closed. It reconnects and is told that its session has expired, as after a real
expiry.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import BinaryIO

from rebalance_lab.world.zk import codec
from rebalance_lab.world.zk.codec import FRAME_LENGTH_BYTES
from rebalance_lab.world.zk.messages import Connect, Operation, Request

TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """A session's id and password, which prove its ownership, and the server that it is connected to."""

    host: str
    port: int
    session_id: int
    password: bytes
    timeout_ms: int


#: `ZooKeeperServer.superSecret` (3.4.6 to 3.9.5).
_SECRET = 0xB3415C00
_PASSWORD_BYTES = 16


def password_of(session_id: int) -> bytes:
    """The password that a ZooKeeper server gives a session (`ZooKeeperServer.generatePasswd`, 3.4.6 to 3.9.5): what
    `java.util.Random` draws from the session's id. For sessions of programs that do not tell it."""
    multiplier, mask = 0x5DEECE66D, (1 << 48) - 1
    state = (session_id ^ _SECRET ^ multiplier) & mask
    words = []
    for _ in range(_PASSWORD_BYTES // 4):
        state = (state * multiplier + 0xB) & mask
        words.append((state >> 16).to_bytes(4, "little"))
    return b"".join(words)


class TakeoverFailed(Exception):
    """The session could not be closed from outside."""


def close_session(loop: asyncio.AbstractEventLoop, credentials: Credentials) -> None:
    """`end_session` in a thread, so that the sessions on `loop` go on. A failure ends the kernel's run, through the
    loop's exception handler."""
    loop.run_in_executor(None, end_session, credentials).add_done_callback(lambda ended: ended.result())


def end_session(credentials: Credentials) -> None:
    """Close the session on a second connection, and wait for the answer. Raises TakeoverFailed, OSError."""
    server = (credentials.host, credentials.port)
    with socket.create_connection(server, timeout=TIMEOUT_S) as connection, connection.makefile("rb") as incoming:
        connect = Connect(credentials.session_id, credentials.timeout_ms, 0, credentials.password)
        connection.sendall(codec.encode_connect(connect))
        frame = read_frame(incoming)
        connected = codec.read_connected(frame, 0, len(frame))
        if connected.session_id != credentials.session_id or connected.timeout_ms <= 0:
            raise TakeoverFailed(
                f"session {credentials.session_id:#x} had ended before it could be closed from outside"
            )
        connection.sendall(codec.encode(Request(1, Operation.CLOSE, "/")))
        read_frame(incoming)


def read_frame(incoming: BinaryIO) -> bytes:
    """The next frame of a connection, without its length. Raises ConnectionError if the connection ends before."""
    header = incoming.read(FRAME_LENGTH_BYTES)
    if len(header) == FRAME_LENGTH_BYTES:
        length = codec.unpack_length(header, 0)[0]
        frame = incoming.read(length)
        if len(frame) == length:
            return frame
    raise ConnectionError("the server closed the connection")
