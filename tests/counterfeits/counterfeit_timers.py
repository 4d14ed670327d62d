"""Members that rebalance by a timer, whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from rebalance_lab.history.events import Kind
from zkconsumer import watcher
from zkconsumer.watcher import Watcher

QUIET_US = 1_500_000


@contextmanager
def timers(quiet_us: int = QUIET_US) -> Iterator[None]:
    """Every member rebalances whenever it has been idle for so long."""
    with patch.object(Watcher, "_unasked", lambda _self: True), patch.object(watcher, "WAKE_PERIOD_US", quiet_us):
        yield


@contextmanager
def noted() -> Iterator[None]:
    """No watch makes a member rebalance: it records the trigger, and that is all."""

    def trigger(self: Watcher, path: str) -> None:
        self._report.step(Kind.REBALANCE_TRIGGERED, path=path, coalesced=self._flag.raised)
        self.triggers += 1

    with patch.object(Watcher, "_trigger", trigger):
        yield


@contextmanager
def only_timers(quiet_us: int = QUIET_US) -> Iterator[None]:
    """Timers, and nothing else."""
    with timers(quiet_us), noted():
        yield
