"""The one task system of the lab: futures, tasks, scopes, deadlines, locks, mailboxes, random streams and processes. It
has two drivers: a heap (virtual time) and asyncio (live)."""

from rebalance_lab.kernel.errors import (
    Cancelled,
    CancelRequest,
    Deadlock,
    Disposed,
    KernelClosed,
    Livelock,
    MailboxFull,
    TaskCancelled,
    TimedOut,
)
from rebalance_lab.kernel.futures import Future, InvalidState
from rebalance_lab.kernel.kernel import Cause, Kernel
from rebalance_lab.kernel.process import IllegalTransition, Process, ProcessState
from rebalance_lab.kernel.randomness import RandomStream
from rebalance_lab.kernel.scopes import Deadline, Scope, Shield
from rebalance_lab.kernel.sync import Flag, Lock, Mailbox
from rebalance_lab.kernel.tasks import Task
from rebalance_lab.kernel.timers import Sleep, Timer

__all__ = [
    "CancelRequest",
    "Cancelled",
    "Cause",
    "Deadline",
    "Deadlock",
    "Disposed",
    "Flag",
    "Future",
    "IllegalTransition",
    "InvalidState",
    "Kernel",
    "KernelClosed",
    "Livelock",
    "Lock",
    "Mailbox",
    "MailboxFull",
    "Process",
    "ProcessState",
    "RandomStream",
    "Scope",
    "Shield",
    "Sleep",
    "Task",
    "TaskCancelled",
    "TimedOut",
    "Timer",
]
