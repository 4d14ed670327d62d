"""The order in which a read found numbers."""

from __future__ import annotations

import pytest
from history_story import Story

from rebalance_lab.history.events import Kind
from rebalance_lab.history.writes import disordered, final_read


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], []),
        ([1, 2, 5], []),
        ([1, 2, 1, 3, 2], []),  # late copies of writes that were sent again
        ([2, 1, 3], [(1, 1)]),
        ([1, 4, 3, 2, 3, 5], [(2, 3), (3, 2)]),
        ([1, "damaged", 2], []),
    ],
)
def test_numbers_that_come_first_behind_a_larger_one(values: list[object], found: list[tuple[int, int]]) -> None:
    story = Story()
    story.add(1, "c1", Kind.OK, detail={"op": "consume", "records": list(enumerate(values))})
    read = final_read(story.history())
    assert read is not None
    assert disordered(read) == found
