"""Ports that stay ours, also while the server they belong to is down."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


class ReservedPort:
    """A free port of 127.0.0.1, kept until `close`.

    A socket that is bound, but never listens, keeps Linux from giving the port to anybody who
    asks for any port, to listen or to connect from. With SO_REUSEADDR on both sides, as Java
    sets it on Linux, the server that the port is for may bind it all the same. So there is no
    race for it, neither at the start nor when the server is started again.
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
