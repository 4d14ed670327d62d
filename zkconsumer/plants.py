"""The planted bugs of a member."""

from __future__ import annotations

from rebalance_lab.history.planted import PlantedBug


class Plant(PlantedBug):
    """A member's bugs. Other names belong to the recorder, the server or a fault."""

    IGNORE_CLAIM_CONFLICT = "ignore-claim-conflict", "member: takes partitions that another member still owns"
    WORK_THROUGH_REBALANCE = "work-through-rebalance", "member: keeps working while it gives up partitions"
    NEVER_CLAIM_LAST = "never-claim-last", "member: does not claim the last partition of its share"
    PERSISTENT_REGISTRATION = (
        "persistent-registration",
        "member: registers with a persistent znode, which outlives its session",
    )
    IGNORE_WATCH = "ignore-watch", "member: does not watch members or brokers"
    LEAVE_ORPHAN = "leave-orphan", "member: forgets the last partition that it claimed, and leaves its owner znode"
    KEEP_CLAIMS = "keep-claims", "member: keeps its claims when it meets a conflict"
    CLAIM_BEFORE_RELEASE = (
        "claim-before-release",
        "member: claims its new partitions before it gives up the old ones",
    )
    GROUP_OF_ITS_OWN = "group-of-its-own", "member: joins a group of its own if it names none"
    DEAL_FROM_BEFORE = "deal-from-before", "member: deals from the view of its previous rebalance"
    REBALANCE_UNASKED = "rebalance-unasked", "member: rebalances once although nothing has changed"
