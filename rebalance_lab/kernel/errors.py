"""What the kernel raises."""

from __future__ import annotations


class CancelRequest:
    """One wish that a task stop. `origin` is the deadline or scope that made it, if one did."""

    __slots__ = ("delivered", "origin", "reason")

    def __init__(self, origin: object, reason: str) -> None:
        self.origin = origin
        self.reason = reason
        self.delivered = False


class Cancelled(BaseException):
    """Raised inside a task that was asked to stop. Never swallow it; `finally` may await.

    A BaseException, so that `except Exception` in protocol code lets it pass.
    """

    def __init__(self, request: CancelRequest) -> None:
        super().__init__(request.reason)
        self.request = request

    @property
    def reason(self) -> str:
        return self.request.reason


class Disposed(BaseException):
    """Thrown into what still waits when a kernel is closed: its ports are fenced by then."""


class TaskCancelled(Exception):
    """Raised where a task is awaited that was cancelled: the waiter itself was not."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"task {task} was cancelled: {reason}")
        self.reason = reason


class TimedOut(Exception):
    """A deadline passed before its block ended."""

    def __init__(self, timeout_us: int, name: str = "") -> None:
        what = f" for {name}" if name else ""
        super().__init__(f"timed out after {timeout_us / 1e6:g} s{what}")
        self.timeout_us = timeout_us


class Deadlock(Exception):
    """Nothing is scheduled and tasks wait. The message says who waits for what."""


class Livelock(Exception):
    """One instant of virtual time took more steps than any real one would."""


class MailboxFull(Exception):
    """A bounded mailbox was put more than its limit."""


class KernelClosed(Exception):
    """The kernel was used after it was closed."""
