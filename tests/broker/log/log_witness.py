"""What of a log no loss of power can take, by the disk: not what the log says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from unittest.mock import patch

from rebalance_lab.broker.log.names import LOG, segment_file, segment_file_parts
from rebalance_lab.wire.kafka.records import batches
from rebalance_lab.world.simulated.disk import SimulatedDisk


def durable_segments(disk: SimulatedDisk, folder: str) -> dict[int, bytes]:
    """What would be left of a log's segments, by their base offsets, if the disk lost all that it was not told to
    sync."""
    worst = deepcopy(disk)
    with patch("rebalance_lab.world.simulated.disk.surviving", lambda _stream, _unsynced: 0):
        worst.lose_power()
    found = {}
    for path, file in worst.files().items():
        parts = segment_file_parts(path.removeprefix(f"{folder}/"))
        if parts is not None and parts[1] == LOG and path == f"{folder}/{segment_file(*parts)}":
            found[parts[0]] = bytes(file.data)
    return found


def durable_end(disk: SimulatedDisk, folder: str, written: Mapping[int, bytes], first: int, start: int) -> int:
    """Up to where a log is durable without a gap, from the segment with the base offset `first` on; 0 if not even that
    is. From `start` on only batches count that were `written`; the log does not have those before any more."""
    segments = durable_segments(disk, folder)
    if first not in segments:
        return 0
    durable = {
        header.base_offset: (data[at : at + header.size], header.last_offset + 1)
        for data in segments.values()
        for at, header in batches(data)
    }
    end = first
    while end in durable and (durable[end][1] <= start or durable[end][0] == written.get(end)):
        end = durable[end][1]
    return end
