"""Connect strings: `host:port,host:port`."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PORT = 2181


class BadConnectString(ValueError):
    """A connect string that cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(connect: str) -> tuple[Server, ...]:
    """The servers of a connect string, in its order; IPv6 addresses stand in brackets.

    Raises BadConnectString: nothing in it, a bad port, or a chroot (not supported yet).
    """
    hosts, _, chroot = connect.partition("/")
    if chroot:
        raise BadConnectString(f"{connect!r} has a chroot (/{chroot}): live sessions do not support one yet")
    servers = tuple(_server(part.strip(), connect) for part in hosts.split(",") if part.strip())
    if not servers:
        raise BadConnectString(f"{connect!r} names no server: give host:port, several by commas")
    return servers


def _server(part: str, connect: str) -> Server:
    if part.startswith("["):
        host, bracket, rest = part[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not bracket or colon not in ("", ":"):
            raise BadConnectString(f"{part!r} in {connect!r} is not [address]:port")
    else:
        host, colon, port = part.rpartition(":")
        if not colon:
            host, port = part, ""
    if not host or (":" in host and not part.startswith("[")):
        raise BadConnectString(f"{part!r} in {connect!r} is not host:port")
    if not colon:
        return Server(host, DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadConnectString(f"{part!r} in {connect!r} has no port from 1 to 65535")
    return Server(host, int(port))
