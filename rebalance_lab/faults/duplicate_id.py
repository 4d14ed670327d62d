"""Duplicate id: a second member starts with the id of one that is alive (defect F4).

The proof is that the second has started. What its registration meets, and when, is left to the registry.
"""

from __future__ import annotations

from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberHandle
from rebalance_lab.subjects.zk_group.options import MemberOptions
from rebalance_lab.trials.injection import Injection
from rebalance_lab.trials.stage import TrialError

NAME = "duplicate-id"


async def join_as(lab: GroupLab, first: MemberHandle, options: MemberOptions) -> MemberHandle:
    """Start one more member with `options`, which give it the id of `first`. Raises TrialError if the ids differ."""
    fault = Injection(lab, NAME, first)
    second = await lab.start_member(options, wait=False)
    await lab.until(lambda: second.started, f"the start of {second.actor}")
    if first.state.member != second.state.member:
        raise TrialError(
            f"{second.actor} is {second.state.member}, not {first.state.member}: give both one consumer.id"
        )
    fault.bit(f"{second.actor} started as {second.state.member}, as {first.actor} did")
    fault.ended()
    return second
