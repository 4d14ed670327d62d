"""What a loss of power takes from a disk: all that was not synced, from some point on.

`kill -9` keeps the operating system's page cache, so it never shows what the recovery of a log is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.kernel import RandomStream


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """What went. `bytes_lost`: path -> number of bytes; `changes_undone`: how many creations, renames, deletions and
    truncations were undone."""

    bytes_lost: Mapping[str, int]
    changes_undone: int = 0

    @property
    def proof(self) -> str | None:
        """In words; None if all had been synced, so that nothing could go."""
        parts = [f"bytes lost of {path}: {count}" for path, count in sorted(self.bytes_lost.items())]
        if self.changes_undone:
            parts.append(f"changes of names and truncations undone: {self.changes_undone}")
        return "; ".join(parts) or None

    def of(self, ending: str) -> PowerLoss:
        """What went of the bytes of files whose paths end so."""
        return PowerLoss({path: count for path, count in self.bytes_lost.items() if path.endswith(ending)})


def surviving(stream: RandomStream, unsynced: int) -> int:
    """How much of what was not synced is kept: nothing in one draw of four, everything in another. A number in
    [0, `unsynced`]."""
    match stream.below(4):
        case 0:
            return 0
        case 1:
            return unsynced
        case _:
            return stream.below(unsynced + 1)
