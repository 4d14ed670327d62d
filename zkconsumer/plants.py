"""Planted bugs: each makes a check report a violation. They are selected by name, and off unless a trial plants one."""

from __future__ import annotations

from enum import StrEnum


class Plant(StrEnum):
    """A member's bugs. Other names belong to the recorder, the server or a fault."""

    IGNORE_CLAIM_CONFLICT = "ignore-claim-conflict"  # the member treats what another one owns as its own
    WORK_THROUGH_REBALANCE = "work-through-rebalance"  # fetchers are not stopped
    NEVER_CLAIM_LAST = "never-claim-last"  # no member claims a topic's last partition
    PERSISTENT_REGISTRATION = "persistent-registration"  # the id znode outlives its session
    IGNORE_WATCH = "ignore-watch"  # neither the ids nor the brokers are watched
    LEAVE_ORPHAN = "leave-orphan"  # the last claimed partition is missing in the member's own registry
    KEEP_CLAIMS = "keep-claims"  # what was claimed before a conflict is not released
    CLAIM_BEFORE_RELEASE = "claim-before-release"  # new partitions are claimed before the old ones are released
    GROUP_OF_ITS_OWN = "group-of-its-own"  # a member without a group joins one named after its host
    DEAL_FROM_BEFORE = "deal-from-before"  # the member decides from the view of its previous rebalance
    REBALANCE_UNASKED = "rebalance-unasked"  # the third idle wake-up of the watcher counts as a trigger
