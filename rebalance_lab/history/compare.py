"""Comparing two histories: the first event that they do not share.

A rolling hash over every `BLOCK` events stands for all events up to there, so that two runs
agree on a prefix exactly as long as their hashes do: the first that differs is found by halving,
and only one block is compared event by event.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import canonical

#: Events between two rolling hashes.
BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """`index`: how many events both histories begin with; the next one differs. A side that has
    ended there is None."""

    index: int
    left: Event | None
    right: Event | None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields in which the two events differ; none where a side has ended."""
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
    """Where two histories part; None when they are the same."""
    ours, theirs = rolling_hashes(left, block), rolling_hashes(right, block)
    blocks = range(min(len(ours), len(theirs)))
    differing = bisect_left(blocks, True, key=lambda number: ours[number] != theirs[number])
    for index in range(differing * block, max(len(left), len(right))):
        mine = left[index] if index < len(left) else None
        other = right[index] if index < len(right) else None
        if mine != other:
            return Difference(index, mine, other)
    return None
