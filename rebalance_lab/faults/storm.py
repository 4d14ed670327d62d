"""A storm: many members come and go within a moment, or one member flaps: it leaves and comes back
repeatedly.

Each coming and each going is a fault of its own, with its own proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, GroupLab, MemberHandle, MemberOptions


async def storm(
    lab: GroupLab,
    joins: int,
    leaving: Sequence[MemberHandle],
    spread_ms: int = 0,
    options: MemberOptions = AS_PLANNED,
) -> list[MemberHandle]:
    """`joins` members come while the members `leaving` go, evenly spread over `spread_ms`. Returns the newcomers."""
    gap_ms = spread_ms // max(joins, len(leaving), 1)

    async def come(number: int) -> MemberHandle:
        await lab.sleep_ms(number * gap_ms)
        return await join(lab, options)

    async def go(number: int, member: MemberHandle) -> None:
        await lab.sleep_ms(number * gap_ms)
        await leave(lab, member)

    async with lab.tasks.scope("storm") as scope:
        comers = [scope.spawn(come(number), f"join {number}") for number in range(joins)]
        for number, member in enumerate(leaving):
            scope.spawn(go(number, member), f"leave of {member.actor}")
    return [comer.result() for comer in comers]


async def flap(lab: GroupLab, times: int, up_ms: int, down_ms: int, options: MemberOptions = AS_PLANNED) -> None:
    """A member comes and leaves `times` times; it stays and is away for the given times."""
    for _ in range(times):
        member = await join(lab, options)
        await lab.sleep_ms(up_ms)
        await leave(lab, member)
        await lab.sleep_ms(down_ms)
