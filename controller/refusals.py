"""Why a controller does not do what it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.wire.kafka.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class NotElected:
    """Why a partition has not got the leader that was wanted. `message`: None if it leads already."""

    code: ErrorCode
    message: str | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why a partition is not reassigned."""

    code: ErrorCode
    message: str
