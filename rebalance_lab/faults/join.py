"""Join: a member comes. The proof is its registration in the registry."""

from __future__ import annotations

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, GroupLab, MemberHandle, MemberOptions
from rebalance_lab.trials.lab import Injection

JOIN = FaultKind(
    name="join",
    noun="join",
    suffers="joins",
    many="join",
    band="joins",
    begins="joins:",
    alone="Members come.",
    momentary=True,
    spares_connections=True,
    change=True,
    in_controls=True,
)


async def join(lab: GroupLab, options: MemberOptions = AS_PLANNED) -> MemberHandle:
    """Start the next member, wait for its first rebalance, and record the proof that it came."""
    fault = Injection(lab, JOIN, f"m{len(lab.members) + 1}")
    member = await lab.start_member(options)
    registered = member.state.registered
    if registered is not None:
        fault.bit(f"zxid {registered.zxid}: {registered.of('path')} created")
    fault.ended()
    return member
