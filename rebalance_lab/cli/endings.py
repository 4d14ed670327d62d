"""Foreground commands end in an orderly way on SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from rebalance_lab.kernel.interruption import Interrupted


def ended_by_signals() -> AbstractContextManager[None]:
    """For commands that run until a signal ends them: within the block a signal is not an error."""
    return suppress(Interrupted)
