"""What Python workers of Spark have in common."""

from __future__ import annotations

import gc
import itertools

_SETTLING_TASKS = 3
_tasks = itertools.count()


def settle_worker() -> None:
    """In a Spark worker, at the start of a task: its modules live as long as it does.

    Spark collects garbage after every task; each time that would walk all modules, which takes
    longer than reading a trial. Libraries load on first use, so one task is not enough; for
    ever would keep what tasks leave behind.
    """
    if next(_tasks) < _SETTLING_TASKS:
        gc.freeze()
