"""O6w, hold and wait: members wait for each other, and each holds what another waits for (claim Z16).

Looked at are attempts that failed on a conflict until the phase `closing`, while their members went on holding
partitions by the registry. Such members wait in a circle if each waits for a partition that the next one holds. The
circle must last until the group rests next, or until the runner gives up waiting for that: members that let go
before then were only slow. As 0.8.2 deletes what it claimed before it waits, this takes members that do not.

Witness: the ATTEMPT_FAILED of each member of the circle.
"""

from __future__ import annotations

from rebalance_lab.checks.faults import clock_drifted, not_violated, violated
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.scope import closing_us
from rebalance_lab.checks.waits import wait_cycles
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


def judge(history: History) -> Finding:
    """Measures: `count` of circles; `conflicts`, attempts that failed for one."""
    until_us, _ = closing_us(history)
    cycles = [] if clock_drifted(history) else wait_cycles(history, until_us)
    failed = events_of(history, Kind.ATTEMPT_FAILED)
    numbers = {"count": len(cycles), "conflicts": sum(event.of("reason") == "conflict" for event in failed)}
    if cycles:
        why = ", ".join(f"{wait.member} holds {wait.holds} and waits for {wait.waits_for}" for wait in cycles[0])
        return violated(why, tuple(wait.failed.id for wait in cycles[0]), numbers)
    nothing = None if events_of(history, Kind.REBALANCE_BEGAN) else "no member ever rebalanced"
    why = "no members waited for each other"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


CHECK = Check(
    name="hold_and_wait",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members waited for each other forever, each holding what another waited for.",
    plants=("keep-claims",),
    judge=judge,
    applies_to=(ZK,),
)
