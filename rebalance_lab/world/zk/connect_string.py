"""Connect strings: `host:port,host:port/chroot`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

DEFAULT_PORT = 2181

#: What no znode's name holds (PathUtils.validatePath of ZooKeeper 3.4 to 3.9).
_FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


class BadConnectString(ValueError):
    """A connect string that cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Server:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Chroot:
    """The znode under which a session sees everything. `prefix` is empty for none.

    As in Java's client, `/` of a session with a chroot is the chroot itself: creating it makes
    the chroot, if its parent is there.
    """

    prefix: str = ""

    def takes(self, path: str) -> bool:
        """Whether a path can be sent. The wire has no empty string: the server would take it for
        null. And behind a chroot a path without its slash would name another znode."""
        return path.startswith("/") if self.prefix else bool(path)

    def takes_all(self, paths: Collection[str]) -> bool:
        """Whether all of these paths can be sent."""
        return {path[:1] for path in paths} <= {"/"} if self.prefix else "" not in paths

    def to_server(self, path: str) -> str:
        """The path as the server knows it."""
        return self.prefix if self.prefix and path == "/" else self.prefix + path

    def to_client(self, path: str) -> str:
        """The path as the session's owner knows it. One that is not under the chroot, which no
        server sends, is left as it is (as in Java)."""
        prefix = self.prefix
        if not prefix:
            return path
        if path == prefix:
            return "/"
        return path[len(prefix) :] if path.startswith(prefix + "/") else path


NO_CHROOT = Chroot()


@dataclass(frozen=True, slots=True)
class ConnectString:
    servers: tuple[Server, ...]
    chroot: Chroot


def parse(connect: str) -> ConnectString:
    """The servers of a connect string, in its order, and its chroot. IPv6 addresses stand in
    brackets.

    Raises BadConnectString: nothing in it, a bad port, a chroot that no znode can have.
    """
    hosts, slash, chroot = connect.partition("/")
    servers = tuple(_server(part.strip(), connect) for part in hosts.split(",") if part.strip())
    if not servers:
        raise BadConnectString(f"{connect!r} names no server: give host:port, several by commas")
    return ConnectString(servers, _chroot(slash + chroot.rstrip(), connect))


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


def _chroot(path: str, connect: str) -> Chroot:
    """A lone slash is no chroot, as with Java."""
    if path in ("", "/"):
        return NO_CHROOT
    names = path[1:].split("/")
    if "," in path and ":" in path:
        wrong = "stands behind the last server, once: it holds what looks like another server"
    elif "" in names:
        wrong = "ends with a slash" if names[-1] == "" and "" not in names[:-1] else "has an empty name between slashes"
    elif "." in names or ".." in names:
        wrong = "has a name of dots: ZooKeeper knows no relative paths"
    elif _FORBIDDEN.search(path):
        wrong = "holds a character that no znode's name may have"
    else:
        return Chroot(path)
    raise BadConnectString(f"the chroot {path!r} in {connect!r} {wrong}")
