"""Pause: a member's process is stopped for a while, as by a long garbage collection.

Up to a third of the ZooKeeper session it does no harm; past the session, with a margin, it makes a
zombie; in between it may do either (`faults.silence` has the bounds). Live it is SIGSTOP and SIGCONT;
simulated, the kernel holds the process's tasks, timers and network. It bit if the process was seen
stopped; where it must outlast the session, the session's close in the registry proves that it did.
"""

from __future__ import annotations

from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.lab import Lab, MemberHandle

NAME = "pause"


async def pause(lab: Lab, member: MemberHandle, duration_ms: int) -> None:
    """Pause `member` for `duration_ms`, and record what proves it."""
    outlasts = duration_ms > latest_end_ms(lab.plan)
    fault = Injection(lab, NAME, member, planned_ms=duration_ms, must_outlast_session=outlasts)
    bites = lab.plan.plant != "pause-that-does-not-bite"
    fault.bit(await member.process.pause() if bites else "planted: nothing was stopped")
    await lab.sleep_ms(10 * duration_ms if lab.plan.plant == "pause-that-overstays" else duration_ms)
    fault.ended()
    if bites:
        await lab.tasks.sleep(1)  # histories are ordered by time: the end stands before what follows it
        await member.process.resume()
