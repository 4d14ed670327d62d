"""Ports that stay reserved while the server that uses them is down."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


class ReservedPort:
    """A free port of 127.0.0.1, kept until `close`.

    A socket that is bound but never listens keeps Linux from giving the port to another process that asks for any port,
    to listen or to connect from. The server that it is reserved for can still bind it, because both sockets have
    SO_REUSEADDR, which Java sets on Linux. So no other process can take the port before the server starts, or while it
    is started again.
    """

    def __init__(self) -> None:
        self._holder = socket.socket()
        try:
            self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._holder.bind((HOST, 0))
        except OSError:
            self._holder.close()
            raise
        self.number: int = self._holder.getsockname()[1]

    def close(self) -> None:
        self._holder.close()

    def __repr__(self) -> str:
        return f"<ReservedPort {self.number}>"
