"""Limits of the system that end a command, said by name: what Linux, Python and Java say of them names none."""

from __future__ import annotations

import resource

from rebalance_lab.analysis.errors import SparkStartError
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live.java import EmbeddedServerError

#: What is said when no process and no thread can be started.
_NO_PROCESS = (
    "Resource temporarily unavailable",
    "can't start new thread",
    "unable to create native thread",
    "pthread_create failed",
    "Cannot create worker GC thread",
)


#: What is said when a process gets no more memory: by the loader of libraries, by Java, by the system and by Python.
_NO_MEMORY = (
    "failed to map segment from shared object",
    "Could not reserve enough space",
    "Could not allocate compressed class space",
    "insufficient memory for the Java Runtime Environment",
    "Cannot allocate memory",
    "unexpected MemoryError",
    "unexpected SystemError: error return without exception set",  # of C code that got no memory for its error
)

#: What is said when no file can be opened.
_NO_FILE = ("Too many open files",)

#: A command that starts a JVM may need so many.
_ENOUGH = 100

#: Errors of what was started. The logs of a JVM that lacks threads do not always say so.
_OF_PROCESSES = (EmbeddedServerError, TrialError, SparkStartError)


def named(message: str, cause: BaseException | None = None) -> str:
    """The message, or the name of the limit that it is about. `cause`: the error that it tells of."""
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    of_memory = f"ulimit -v, which is {_shown(memory, 1024)}"
    # Processes before memory: a JVM that gets no thread says "insufficient memory", too.
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    few = soft != resource.RLIM_INFINITY and soft < _ENOUGH and isinstance(cause, _OF_PROCESSES)
    if few or any(each in message for each in _NO_PROCESS):
        or_memory = "" if memory == resource.RLIM_INFINITY else f", or the limit of memory ({of_memory})"
        return (
            f"no more processes or threads can be started; raise the limit of this user (ulimit -u, which is "
            f"{_shown(soft)}) or of the container{or_memory}, or end other processes"
        )
    if any(each in message for each in _NO_MEMORY):
        return f"there is not enough memory; raise the limit of a process ({of_memory}) or of the container"
    if any(each in message for each in _NO_FILE):
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"no more files can be opened; raise the limit of a process (ulimit -n, which is {_shown(soft)})"
    return message


def _shown(limit: int, unit: int = 1) -> str:
    return "unlimited" if limit == resource.RLIM_INFINITY else str(limit // unit)
