"""The errors that the kernel raises, and the base of those whose messages users read."""

from __future__ import annotations


class LabError(Exception):
    """What cannot be done, or be read. The message is written for users: it names what is wrong, and what to do."""


class CancelRequest:
    """A request that a task stop. `origin`: the deadline or scope that made it, if any."""

    __slots__ = ("delivered", "origin", "reason")

    def __init__(self, origin: object, reason: str) -> None:
        self.origin = origin
        self.reason = reason
        self.delivered = False


class Cancelled(BaseException):
    """Raised inside a task that was asked to stop. Never swallow it; `finally` may await.

    It is a BaseException, so `except Exception` in protocol code does not catch it.
    """

    def __init__(self, request: CancelRequest) -> None:
        super().__init__(request.reason)
        self.request = request

    @property
    def reason(self) -> str:
        return self.request.reason


class Disposed(BaseException):
    """Thrown into the tasks that still wait when a kernel is closed. Its ports are fenced by then."""


class TaskCancelled(Exception):
    """Raised in a task that awaits a cancelled task, and was not cancelled itself."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"task {task} was cancelled: {reason}")
        self.reason = reason


class TimedOut(Exception):
    """A deadline passed before the end of its block."""

    def __init__(self, timeout_us: int, name: str = "") -> None:
        what = f" for {name}" if name else ""
        super().__init__(f"timed out after {timeout_us / 1e6:g} s{what}")
        self.timeout_us = timeout_us


class Deadlock(Exception):
    """Tasks wait, but nothing is scheduled. The message lists each task and what it waits for."""


class Livelock(Exception):
    """One instant of virtual time took more steps than any healthy program takes."""


class MailboxFull(Exception):
    """More items were put into a bounded mailbox than its limit."""


class KernelClosed(Exception):
    """The kernel was used after it was closed."""
