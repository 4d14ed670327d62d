"""Counterfeits of a log: each does something wrong that a person could overlook, and the lives that end in crashes must
show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from log_crashes import run_lives

from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.opening import _Opening
from rebalance_lab.broker.log.segments import Segments

LIVES = 5

_recover, _delete_old_segments = _Opening._recover, PartitionLog.delete_old_segments


async def drops_the_whole_log(self: _Opening, recovery_point: int) -> None:
    """A recovery that takes all for too old, where retention deletes."""
    await _recover(self, recovery_point)
    if self._config.retention_bytes >= 0 and self.segments.all:
        await self.segments.active.load()
        end = self.segments.active.next_offset
        await self.segments.drop_from(0, self._now_ms)
        self._start_offset = max(self._start_offset, end)
        self._producers.clear(self._start_offset)


async def claims_to_be_durable(self: PartitionLog, end_offset: int) -> None:
    """A flush that syncs nothing: the log believes itself."""
    self.last_flush_ms = self._around.clock.wall_ms()
    self.recovery_point = max(self.recovery_point, end_offset)


async def never_flushes(self: PartitionLog, _end_offset: int) -> None:
    """A flush that neither syncs nor claims anything, so that the recovery reads all."""
    self.last_flush_ms = self._around.clock.wall_ms()


async def syncs_the_active_segment(self: Segments, _start_offset: int, _end_offset: int) -> None:
    """A flush that overlooks the segments before."""
    await self.active.flush()
    await self._storage.sync_folder(self.folder)


async def syncs_no_folder(self: Segments, _start_offset: int, end_offset: int) -> None:
    """A flush after which the bytes are durable, and the names of new segments are not."""
    for segment in self.all:
        if segment.base_offset < end_offset:
            await segment.flush()


async def deletes_too_much(self: PartitionLog) -> int:
    """A retention that leaves the active segment only."""
    config = self.config
    if config.retention_bytes >= 0:
        self.config = msgspec.structs.replace(config, retention_bytes=0)
    try:
        return await _delete_old_segments(self)
    finally:
        self.config = config


@pytest.mark.parametrize(
    ("place", "name", "false"),
    [
        (_Opening, "_recover", drops_the_whole_log),
        (PartitionLog, "_flush", claims_to_be_durable),
        (PartitionLog, "_flush", never_flushes),
        (Segments, "flush", syncs_the_active_segment),
        (Segments, "flush", syncs_no_folder),
        (PartitionLog, "delete_old_segments", deletes_too_much),
    ],
    ids=lambda each: each.__name__ if callable(each) and not isinstance(each, type) else "",
)
def test_a_counterfeit_is_noticed(place: type, name: str, false: Callable[..., Any]) -> None:
    def lives() -> None:
        for seed in range(50):
            run_lives(seed, LIVES)

    with patch.object(place, name, false), pytest.raises(AssertionError):
        lives()
