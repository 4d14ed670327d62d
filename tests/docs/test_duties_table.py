"""The table of the controller's duties in docs/broker.md."""

from __future__ import annotations

import re
from pathlib import Path

from rebalance_lab.scenarios.duties import OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "broker.md").read_text()


def test_it_gives_the_operations_that_are_counted() -> None:
    rows = re.findall(r"^\| `([a-z-]+)`[^|]*\| (\d+)", PAGE, re.MULTILINE)
    assert {name: int(number) for name, number in rows} == {duty.value: number for duty, number in OPERATIONS.items()}
