"""Signs of life of a command that runs long and has nothing to say. A terminal shows a spinner or a bar; a log file
would stay empty for minutes, and nobody could tell work from a standstill."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count

from rebalance_lab.cli.at_once import NAME
from rebalance_lab.cli.streams import last_said_s

#: Minutes after the start at which a sign is due; after the last of them every `EVERY_MIN`.
AT_MIN = (1, 2, 5)
EVERY_MIN = 10

#: A command that has written to stderr within this time needs no sign.
QUIET_S = 30.0

_MINUTE_S = 60.0


@contextmanager
def signs_of_life(minute_s: float = _MINUTE_S, quiet_s: float = QUIET_S) -> Iterator[None]:
    """Within the block, write now and then to stderr how long it has been running, unless stderr is a terminal."""
    if sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_write, args=(over, minute_s, quiet_s), name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=1.0)  # it may wait for a reader of stderr


def _write(over: threading.Event, minute_s: float, quiet_s: float) -> None:
    began_s = time.monotonic()
    for minutes in chain(AT_MIN, count(EVERY_MIN, EVERY_MIN)):
        due_s = began_s + minutes * minute_s
        if over.wait(max(0.0, due_s - time.monotonic())):
            return
        if time.monotonic() - last_said_s() >= quiet_s:
            print(f"{NAME}: still running after {minutes} min", file=sys.stderr, flush=True)
