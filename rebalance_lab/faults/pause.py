"""Pause: a member's process is stopped for a while, as by a long garbage collection.

A pause of up to a third of the ZooKeeper session does no harm. One that outlasts the session by a margin
makes a zombie. In between both may happen (`faults.silence` has the bounds). In live trials the fault is
SIGSTOP and SIGCONT; in the simulator the kernel holds the process's tasks, timers and network. The proof
is that the process was seen stopped. If the pause must outlast the session, the session's close in the
registry proves that it did.
"""

from __future__ import annotations

from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.history.intervals import PAUSE
from rebalance_lab.kernel import Flag
from rebalance_lab.trials.lab import AnyLab, AnyNode, FaultBug, Injection

PAUSED = FaultKind(
    name=PAUSE,
    noun="pause",
    suffers="is paused",
    many="are paused",
    band="paused",
    begins="pauses",
    ends="wakes",
    alone="Processes stop now and then: for garbage collection, swapping, or a virtual machine's migration.",
)


class PauseBug(FaultBug):
    """The planted bugs of this fault."""

    DOES_NOT_BITE = "pause-that-does-not-bite", "fault: reports a pause of the member, and does not pause it"
    OVERSTAYS = "pause-that-overstays", "fault: pauses the member ten times as long as asked"


async def pause(lab: AnyLab, node: AnyNode, duration: int | Flag, stopped: Flag | None = None) -> None:
    """Pause `node` for `duration` ms, or until the flag is raised, and record the proof. `stopped` is raised once it
    stands still."""
    outlasts = not isinstance(duration, Flag) and duration > latest_end_ms(lab.plan)
    fault = Injection(lab, PAUSED, node, planned=duration, must_outlast_session=outlasts)
    bites = lab.plan.plant != PauseBug.DOES_NOT_BITE
    fault.bit(await node.process.pause() if bites else "planted: nothing was stopped")
    if stopped is not None:
        stopped.raise_()
    await lab.lasts(_overstayed(lab, duration))
    fault.ended()
    if bites:
        await lab.tasks.sleep(1)  # histories are ordered by time: the end stands before what follows it
        await node.process.resume()


def _overstayed(lab: AnyLab, duration: int | Flag) -> int | Flag:
    if isinstance(duration, Flag) or lab.plan.plant != PauseBug.OVERSTAYS:
        return duration
    return 10 * duration
