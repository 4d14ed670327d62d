"""Planted bugs: each makes one check say no. One switch, by name; never on in earnest."""

from __future__ import annotations

from enum import StrEnum


class Plant(StrEnum):
    """A member's bugs. Other names belong to the recorder, the server or a fault."""

    IGNORE_CLAIM_CONFLICT = "ignore-claim-conflict"  # takes as its own what another member holds
    WORK_THROUGH_REBALANCE = "work-through-rebalance"  # fetchers are not stopped
    NEVER_CLAIM_LAST = "never-claim-last"  # nobody claims a topic's last partition
    PERSISTENT_REGISTRATION = "persistent-registration"  # the id znode outlives its session
    IGNORE_WATCH = "ignore-watch"  # neither the ids nor the brokers are watched
    LEAVE_ORPHAN = "leave-orphan"  # the last of the claimed stays out of the member's own registry
    KEEP_CLAIMS = "keep-claims"  # what was claimed before a conflict is not given back
    CLAIM_BEFORE_RELEASE = "claim-before-release"  # what is owned is given up only after the new is claimed
    GROUP_OF_ITS_OWN = "group-of-its-own"  # who names no group is in one of its host's name
    DEAL_FROM_BEFORE = "deal-from-before"  # the view of the rebalance before is dealt from
    REBALANCE_UNASKED = "rebalance-unasked"  # the third idle wake of the watcher counts as a trigger
