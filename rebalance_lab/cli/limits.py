"""Limits of the system that end a command, said by name: what Linux, Python and Java say of them names none."""

from __future__ import annotations

import resource

from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.world.live.java import EmbeddedServerError

#: What is said when no process and no thread can be started.
_NO_PROCESS = (
    "Resource temporarily unavailable",
    "can't start new thread",
    "unable to create native thread",
    "pthread_create failed",
    "Cannot create worker GC thread",
)


#: A command that starts a JVM may need so many.
_ENOUGH = 100

#: Errors of what was started. The logs of a JVM that lacks threads do not always say so.
_OF_PROCESSES = (EmbeddedServerError, TrialError, SparkStartError)


def named(message: str, cause: BaseException | None = None) -> str:
    """The message, or the name of the limit that it is about. `cause`: the error that it tells of."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    few = soft != resource.RLIM_INFINITY and soft < _ENOUGH and isinstance(cause, _OF_PROCESSES)
    if not few and not any(each in message for each in _NO_PROCESS):
        return message
    limit = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    return (
        "no more processes or threads can be started; raise the limit of this user (ulimit -u, which is "
        f"{limit}) or of the container, or end other processes"
    )
