"""The settings of one log, under Kafka's names and with its defaults (`LogConfig`, Kafka 3.9.1)."""

from __future__ import annotations

from enum import Enum

import msgspec

_DAY_MS = 24 * 3600 * 1000


class TimestampType(Enum):
    """Whose time a record carries: the producer's, or that of the append."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`retention_ms`, `retention_bytes`: -1 keeps everything. `flush_messages`, `flush_ms`: None leaves it to the
    operating system when bytes reach the disk. `min_insync_replicas` is for the leader of the partition,
    `unclean_leader_election_enable` for the controller."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * _DAY_MS
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    flush_messages: int | None = None
    flush_ms: int | None = None
    max_message_bytes: int = 1024 * 1024 + 12
    file_delete_delay_ms: int = 60_000
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    producer_id_expiration_ms: int = _DAY_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    cleanup_policy: tuple[str, ...] = ("delete",)

    @property
    def deletes(self) -> bool:
        """Whether retention deletes old segments. Compaction is not built: a log that asks for it alone keeps all."""
        return "delete" in self.cleanup_policy
