"""What events of a consumer group name by a word: how a rebalance ended, why an attempt failed, what changed."""

from __future__ import annotations

from enum import StrEnum


class RebalanceOutcome(StrEnum):
    """`outcome` of a REBALANCE_ENDED."""

    OK = "ok"
    FAILED = "failed"  # no attempts were left
    SHUTDOWN = "shutdown"  # the member closes


class AttemptFailure(StrEnum):
    """`reason` of an ATTEMPT_FAILED."""

    CONFLICT = "conflict"  # other members own what this one claims
    ERROR = "error"
    SHUTDOWN = "shutdown"  # the member closes


class ChangeKind(StrEnum):
    """`change` of a PHASE: the one that a script makes in a group at rest."""

    JOIN = "join"
    LEAVE = "leave"
    CRASH = "crash"
    BROKER = "broker"  # one comes or goes
    TOPIC = "topic"  # one appears, grows or goes
