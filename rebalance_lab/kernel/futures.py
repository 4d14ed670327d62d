"""Futures: the only thing a task of the kernel can wait for.

A future is completed once, by `set` or `fail`. Later calls have no effect and return False, because a reply and the
loss of its connection may arrive together. Callbacks run at once, in the order in which they were added, on the stack
of the call that completes the future.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class InvalidState(RuntimeError):
    """The result of a future was requested before it was complete."""


class Future(Generic[T]):
    """A value or an error that becomes available later.

    `label`: what a deadlock report prints for a task that waits here. It may be any object with a `str`, and becomes
    text only when a report is made.

    `cause`: the id of the event that counts as the cause of what a waiting task does next, if the call that completes
    the future names none. Answers that are counted but not recorded have one.
    """

    __slots__ = ("__weakref__", "_callbacks", "_error", "_value", "cause", "done", "label")

    def __init__(self, label: object = "future") -> None:
        self.done = False
        self.label = label
        self.cause: tuple[str, int] | None = None
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], None]] | None = None  # most futures have one or two, for a moment

    def set(self, value: T) -> bool:
        """Complete with `value`. Returns False if it was already complete."""
        if self.done:
            return False
        self.done = True
        self._value = value
        if self._callbacks is not None:
            self._call_back(self._callbacks)
        return True

    def fail(self, error: BaseException) -> bool:
        """Complete with `error`. Returns False if it was already complete."""
        if self.done:
            return False
        self.done = True
        self._error = error
        if self._callbacks is not None:
            self._call_back(self._callbacks)
        return True

    def _call_back(self, callbacks: list[Callable[[Future[T]], None]]) -> None:
        self._callbacks = None
        for callback in callbacks:
            callback(self)

    def result(self) -> T:
        """Return the value or raise the error. Raises InvalidState if there is neither yet."""
        if not self.done:
            raise InvalidState(f"{self.label} has no result yet")
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    @property
    def error(self) -> BaseException | None:
        """The error with which it failed; None while it is pending and after success."""
        return self._error

    def on(self, callback: Callable[[Future[T]], None]) -> None:
        """Call back when complete; at once if it already is."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def off(self, callback: Callable[[Future[T]], None]) -> None:
        """Remove a callback. Unknown ones are ignored."""
        if self._callbacks is not None and callback in self._callbacks:
            self._callbacks.remove(callback)

    def __await__(self) -> Generator[Future[Any], None, T]:
        if not self.done:
            yield self
        if self._error is None and self.done:
            return cast(T, self._value)
        return self.result()

    def __repr__(self) -> str:
        state = "pending" if not self.done else "failed" if self._error else "done"
        return f"<{type(self).__name__} {self.label}: {state}>"
