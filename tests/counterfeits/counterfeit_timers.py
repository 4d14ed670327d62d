"""Members that rebalance by a timer, whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from zkconsumer import watcher
from zkconsumer.watcher import Watcher

QUIET_US = 1_500_000


@contextmanager
def timers() -> Iterator[None]:
    """Every member rebalances whenever it has been idle for 1.5 s."""
    with patch.object(Watcher, "_unasked", lambda _self: True), patch.object(watcher, "WAKE_PERIOD_US", QUIET_US):
        yield
