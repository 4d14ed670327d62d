"""Duty: the controller is asked to do something. The proof is that it was asked.

The event of its begin has the duty's name and its target (`history.duties`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rebalance_lab.history.duties import DUTY, Target
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection

DUTY_ASKED = FaultKind(
    name=DUTY,
    noun="duty",
    suffers="has a duty",
    many="have duties",
    band="has a duty",
    begins="has a duty:",
    alone="A controller is asked to do things.",
    momentary=True,
    spares_connections=True,
    change=True,
    in_controls=True,
)


async def ask_duty(
    lab: AnyLab, controller: AnyNode, duty: str, target: Target, ask: Callable[[], Awaitable[object]]
) -> None:
    """Ask for a duty. `ask`: how."""
    fault = Injection(lab, DUTY_ASKED, controller, duty=duty, wanted=target.detail())
    await ask()
    fault.bit(f"{duty} was asked for")
    fault.ended()
