"""Running a simulated trial again up to one of its events, to see what every task waits for.

Events are counted from 1 in the order of the merged history: event N is the N-th line of `history show`.
The replay stops in the step that records this event, before anything else happens; the task that
recorded it "runs now". The merged order sorts events of the same time by actor. So of these, some that
come before the event may not have been recorded yet, and some that come after it may have been.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.kernel import Kernel
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stages.simulated.stage import simulate


class _Halted(BaseException):
    """Ends the replay. It is not an Exception, because members survive those, as Kafka does."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Where a replay stopped. `number` counts from 1. `tasks`: each task, the oldest first, and what it waits for, in
    words."""

    number: int
    event: Event
    tasks: tuple[tuple[str, str], ...]


def halt_at(plan: Plan, history: History, number: int) -> Halt:
    """Replay `plan`, whose stored history is `history`, up to its event `number`.

    Raises TrialError if there is no such event, if the trial cannot be stopped, or if the replay records anything
    that differs from the history.
    """
    if plan.world != "simulated":
        raise TrialError(
            f"{history.trial.id} ran on real processes: it cannot be stopped at an event, as no seed chose its "
            "schedule. A running member writes its tasks to stderr on SIGUSR1"
        )
    if not 1 <= number <= len(history.events):
        raise TrialError(f"{history.trial.id} has events 1 to {len(history.events)}; there is no event {number}")
    known = {event.id: event for event in history.events}
    wanted = history.events[number - 1]
    tasks: list[tuple[str, str]] = []

    def on_event(kernel: Kernel, event: Event) -> None:
        if known.get(event.id) != event:
            raise _Halted(event)
        if event == wanted:
            tasks.extend(kernel.waits())
            raise _Halted(event)

    try:
        simulate(plan, on_event)
    except _Halted as halted:
        (event,) = halted.args
        if event == wanted:
            return Halt(number, wanted, tuple(tasks))
        where = f"event {event.n} of {event.actor}, {event.kind} at {event.at_us} us"
    else:
        where = "its end"
    raise TrialError(f"the replay of {history.trial.id} left the stored history at {where}: another version made it")
