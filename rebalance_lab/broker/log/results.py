"""What a log answers to those who write and read it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class UpTo(Enum):
    """How far a reader may see: consumers to the high watermark, followers to the log's end."""

    HIGH_WATERMARK = "high watermark"
    LOG_END = "log end"


class Appended(NamedTuple):
    """`append_time_ms`: -1 unless records carry the time of their append. `duplicate`: nothing was written; the rest is
    of the batch that is in the log already, and its largest timestamp is taken for the time (as in Kafka)."""

    first_offset: int
    last_offset: int
    append_time_ms: int
    duplicate: bool = False


class Records(NamedTuple):
    """Whole batches; the first may begin before the offset that was asked for. The offsets are as of the reading."""

    data: bytes
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


class FoundOffset(NamedTuple):
    """The answer to a look-up of an offset. `timestamp`: -1 if it was not looked up by time; `leader_epoch`: -1 if it
    is not known."""

    timestamp: int
    offset: int
    leader_epoch: int
