"""Comparing two histories: the first event in which they differ.

A rolling hash after every `BLOCK` events covers all events up to that point. So a binary search over the hashes finds
the first block that differs, and only that block is compared event by event.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import canonical

#: The number of events between two rolling hashes.
BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """`index`: the number of events that both histories have in common; the next one differs. A side is None if its
    history has ended there."""

    index: int
    left: Event | None
    right: Event | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields in which the two events differ; none if one history has ended."""
        left, right = self.left, self.right
        if left is None or right is None:
            return ()
        return tuple(name for name in Event.__struct_fields__ if getattr(left, name) != getattr(right, name))


def rolling_hashes(events: Sequence[Event], block: int = BLOCK) -> list[bytes]:
    """SHA-256 of all events up to the end of each block of `block` events (in the order given);
    the last block may be shorter."""
    rolling = hashlib.sha256()
    found = []
    for begin in range(0, len(events), block):
        rolling.update(canonical(events[begin : begin + block]))
        found.append(rolling.copy().digest())
    return found


def first_difference(left: Sequence[Event], right: Sequence[Event], block: int = BLOCK) -> Difference | None:
    """The first difference of two histories; None if they are the same."""
    ours, theirs = rolling_hashes(left, block), rolling_hashes(right, block)
    blocks = range(min(len(ours), len(theirs)))
    differing = bisect_left(blocks, True, key=lambda number: ours[number] != theirs[number])
    for index in range(differing * block, max(len(left), len(right))):
        mine = left[index] if index < len(left) else None
        other = right[index] if index < len(right) else None
        if mine != other:
            return Difference(index, mine, other)
    return None
