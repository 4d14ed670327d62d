"""A storm: many members come and go at one moment, or one flaps: it leaves and comes again and again.

Each coming and going is a fault of its own, with its own proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.trials.lab import Lab, MemberHandle
from rebalance_lab.trials.members import AS_PLANNED, MemberOptions


async def storm(
    lab: Lab, joins: int, leaving: Sequence[MemberHandle], options: MemberOptions = AS_PLANNED
) -> list[MemberHandle]:
    """`joins` members come while those `leaving` go, all begun at one moment. Returns those that came."""
    async with lab.tasks.scope("storm") as scope:
        comers = [scope.spawn(join(lab, options), f"join {number}") for number in range(joins)]
        for member in leaving:
            scope.spawn(leave(lab, member), f"leave of {member.actor}")
    return [comer.result() for comer in comers]


async def flap(lab: Lab, times: int, up_ms: int, down_ms: int, options: MemberOptions = AS_PLANNED) -> None:
    """A member comes and leaves `times` times; up and down for the given times between."""
    for _ in range(times):
        member = await join(lab, options)
        await lab.sleep_ms(up_ms)
        await leave(lab, member)
        await lab.sleep_ms(down_ms)
