"""Duplicate id: a second member starts with the id of one that is alive (defect F4).

The proof is that the second has started. What its registration meets, and when, is left to the registry.
"""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberHandle, MemberOptions
from rebalance_lab.trials.lab import Injection
from rebalance_lab.trials.stage import TrialError

DUPLICATE_ID = FaultKind(
    name="duplicate-id",
    noun="duplicate id",
    suffers="gets a twin: another member starts with its id",
    many="get a twin",
    band="gets a twin",
    begins="twin of",
    alone="Nothing checks that an id set by hand is unique.",
    momentary=True,
)


async def join_as(lab: GroupLab, first: MemberHandle, options: MemberOptions) -> MemberHandle:
    """Start one more member with `options`, which give it the id of `first`. Raises TrialError if the ids differ."""
    fault = Injection(lab, DUPLICATE_ID, first)
    second = await lab.start_member(options, wait=False)
    await lab.until(lambda: second.started, f"the start of {second.actor}")
    if first.state.member != second.state.member:
        raise TrialError(
            f"{second.actor} is {second.state.member}, not {first.state.member}: give both one consumer.id"
        )
    fault.bit(f"{second.actor} started as {second.state.member}, as {first.actor} did")
    fault.ended()
    return second
