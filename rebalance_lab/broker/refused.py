"""Why a request, or a part of it, is not carried out."""

from __future__ import annotations

from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: What the message of NOT_CONTROLLER says.
NOT_THE_CONTROLLER = "this broker is not the controller"


class Refused(Exception):
    """What a client asked for cannot be done. `code` and the message are what it is told."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class CloseConnection(Exception):
    """The request has no answer that its client could read. The message says why, for the broker's log."""
