"""Comparing two histories: the first event in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rebalance_lab.history.events import Event, encode


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


def first_difference(left: Sequence[Event], right: Sequence[Event]) -> Difference | None:
    """The first event in which two histories differ, as their files would; None when they are the same."""
    for index, (mine, other) in enumerate(zip_longest(left, right)):
        if mine is None or other is None or encode(mine) != encode(other):
            return Difference(index, mine, other)
    return None
