"""Foreground commands end in an orderly way on SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class AskedToEnd(BaseException):
    """Raised in the main thread by the first such signal. It is not an Exception, so only clean-up code handles it."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within the block the first signal raises AskedToEnd, wherever the main thread is. Later signals are ignored, so
    that clean-up is not interrupted. The block swallows AskedToEnd."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise AskedToEnd

    before = {each: signal.signal(each, end) for each in SIGNALS}
    try:
        yield
    except AskedToEnd:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
