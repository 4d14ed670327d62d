"""Set-up of Spark's Python workers."""

from __future__ import annotations

import gc
import itertools

_SETTLING_TASKS = 3
_tasks = itertools.count()


def settle_worker() -> None:
    """Exempt the modules that are loaded now from garbage collection. Call it in a worker, at the start of a task.

    Spark collects garbage after every task. That would walk all modules each time, which takes longer than reading a
    trial. Libraries load on first use, so it is done in the first few tasks, not only in one; but not in all, because
    then the garbage of tasks would never be freed.
    """
    if next(_tasks) < _SETTLING_TASKS:
        gc.freeze()
