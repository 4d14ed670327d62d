"""Planted bugs: each makes one check say no. One switch, by name; never on in earnest."""

from __future__ import annotations

from enum import StrEnum


class Plant(StrEnum):
    """A member's bugs. Other names belong to the recorder, the server or a fault."""

    IGNORE_CLAIM_CONFLICT = "ignore-claim-conflict"  # takes as its own what another member holds
    WORK_THROUGH_REBALANCE = "work-through-rebalance"  # fetchers are not stopped
    NEVER_CLAIM_LAST = "never-claim-last"  # nobody claims a topic's last partition
    PERSISTENT_REGISTRATION = "persistent-registration"  # the id znode outlives its session
