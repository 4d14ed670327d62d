"""ZooKeeper's errors, as protocol code sees them in every world.

Definite errors say that nothing was done. ConnectionLoss is *info*: it may have been done.
"""

from __future__ import annotations

from rebalance_lab.kernel.errors import LabError


class ZooKeeperError(LabError):
    """An operation failed. `code` is ZooKeeper's; `zxid` that of the reply, -1 without one."""

    code = 0
    hint = ""

    def __init__(self, operation: str, path: str, *, zxid: int = -1, session_id: int = 0) -> None:
        where = f" (session {session_id:#x}, zxid {zxid:#x})" if zxid >= 0 else f" (session {session_id:#x})"
        super().__init__(f"{type(self).__name__}: {operation} {path}{where}{self.hint}")
        self.operation = operation
        self.path = path
        self.zxid = zxid
        self.session_id = session_id

    def tell(self, hint: str) -> None:
        """Add what is known of the reason to the message."""
        self.args = (f"{self}{hint}",)


class ConnectionLoss(ZooKeeperError):
    code = -4


class Unimplemented(ZooKeeperError):
    """The server does not know the operation (UnimplementedRequestProcessor), and closes the connection."""

    code = -6
    hint = ": the server is too old for it; multi-read, the cure `multi.read` too, needs ZooKeeper 3.6 or later"


class BadArguments(ZooKeeperError):
    code = -8


class NoNode(ZooKeeperError):
    code = -101


class NoAuth(ZooKeeperError):
    code = -102
    hint = ": the ACL there does not let this session do it; who may is set where the znode was created"


class BadVersion(ZooKeeperError):
    code = -103


class NoChildrenForEphemerals(ZooKeeperError):
    code = -108


class NodeExists(ZooKeeperError):
    code = -110


class NotEmpty(ZooKeeperError):
    code = -111


class SessionExpired(ZooKeeperError):
    code = -112


class AuthFailed(ZooKeeperError):
    """The server does not accept who the session says it is, and has closed it."""

    code = -115
    hint = ": the server does not accept who this session says it is"


class SessionClosed(ZooKeeperError):
    """The session was closed by its owner: further operations are a mistake of the caller."""

    code = -10_000


class MultiRefused(ZooKeeperError):
    """A multi was refused as a whole. `index`: which of its operations was the first refused;
    `reason`: the error of that one. `code` is that of the reason."""

    def __init__(self, index: int, reason: ZooKeeperError) -> None:
        super().__init__(
            f"multi, refused at its operation {index} ({type(reason).__name__})",
            reason.path,
            zxid=reason.zxid,
            session_id=reason.session_id,
        )
        self.index = index
        self.reason = reason
        self.code = reason.code


class RequestTooLarge(ZooKeeperError):
    """The request is longer than the server takes (`jute.maxbuffer`); it was not sent. A real
    server would close the connection instead, and the client would see ConnectionLoss."""

    code = -10_001


class UnknownError(ZooKeeperError):
    """A code this lab has no class for; the message holds it."""

    def __init__(self, operation: str, path: str, *, code: int, zxid: int = -1, session_id: int = 0) -> None:
        super().__init__(f"{operation} (error code {code})", path, zxid=zxid, session_id=session_id)
        self.code = code


#: Of the errors with a fixed code.
BY_CODE = {each.code: each for each in ZooKeeperError.__subclasses__() if each.code}


def error_for(code: int, operation: str, path: str, *, zxid: int = -1, session_id: int = 0) -> ZooKeeperError:
    """The error object for a code from the wire."""
    kind = BY_CODE.get(code)
    if kind is None:
        return UnknownError(operation, path, code=code, zxid=zxid, session_id=session_id)
    return kind(operation, path, zxid=zxid, session_id=session_id)
