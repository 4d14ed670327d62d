"""Processes: what pause and kill act on.

Tasks, timers and deliveries from the network belong to the process in which they were created. *Pause* holds all three
back, as SIGSTOP does. At resume, what has come due or arrived in the meantime happens: the network first, then timers,
because an event loop that wakes up looks at its sockets first. *Kill* does not clean up: nothing of the process ever
runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_lab.kernel.kernel import Kernel
    from rebalance_lab.kernel.tasks import Task
    from rebalance_lab.kernel.timers import Timer


class ProcessState(Enum):
    RUNNING = "running"
    PAUSED = "paused"
    KILLED = "killed"


#: state -> the states it may change to.
TRANSITIONS: dict[ProcessState, frozenset[ProcessState]] = {
    ProcessState.RUNNING: frozenset({ProcessState.PAUSED, ProcessState.KILLED}),
    ProcessState.PAUSED: frozenset({ProcessState.RUNNING, ProcessState.KILLED}),
    ProcessState.KILLED: frozenset(),
}


class IllegalTransition(RuntimeError):
    """The state of a process does not allow the requested change."""


class Process:
    """Through this, faults act on a part of the kernel's tasks."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.name = name
        self.state = ProcessState.RUNNING
        self.running = True  # a copy of what `state` says, because each step of each task asks for it
        self._kernel = kernel
        self._held_tasks: list[Task[object]] = []
        self._held_timers: list[Timer] = []
        self._held_deliveries: list[Callable[[], None]] = []
        self._listeners: list[Callable[[ProcessState], None]] = []

    def on_change(self, listener: Callable[[ProcessState], None]) -> None:
        """Call `listener` with each new state at the moment it begins."""
        self._listeners.append(listener)

    def pause(self) -> None:
        """Hold everything until `resume`. Raises IllegalTransition unless running."""
        self._change(ProcessState.PAUSED)

    def resume(self) -> None:
        """Go on with deliveries, then timers by due time, then tasks. Raises IllegalTransition unless paused."""
        self._change(ProcessState.RUNNING)
        deliveries, self._held_deliveries = self._held_deliveries, []
        timers, self._held_timers = self._held_timers, []
        tasks, self._held_tasks = self._held_tasks, []
        for callback in deliveries:  # by `deliver`, because one of them may pause or kill again
            self._kernel.stimulated(None, partial(self.deliver, callback))
        for timer in sorted(timers, key=lambda each: (each.due_us, each.sequence)):
            timer.fire()
        for task in tasks:
            self._kernel.ready(task)

    def kill(self) -> None:
        """Stop for ever, without any clean-up. Raises IllegalTransition if it was killed before."""
        self._change(ProcessState.KILLED)
        self._held_deliveries.clear()
        self._held_timers.clear()

    def deliver(self, callback: Callable[[], None]) -> None:
        """Run `callback` for something that arrives from outside: now, at resume, or never."""
        if self.running:
            callback()
        elif self.state is ProcessState.PAUSED:
            self._held_deliveries.append(callback)

    def hold_task(self, task: Task[object]) -> None:
        self._held_tasks.append(task)

    def hold_timer(self, timer: Timer) -> None:
        self._held_timers.append(timer)

    def _change(self, new: ProcessState) -> None:
        if new not in TRANSITIONS[self.state]:
            raise IllegalTransition(f"process {self.name} is {self.state.value}; cannot become {new.value}")
        self.state = new
        self.running = new is ProcessState.RUNNING
        for listener in self._listeners:
            listener(new)

    def __repr__(self) -> str:
        return f"<Process {self.name}: {self.state.value}>"
