"""docs/adding-a-subject.md: what it names is there. The subject that it points to is run by `test_toy_subject`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from rebalance_lab.trials.subject import Subject

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-subject.md").read_text()


def test_the_table_has_each_field_of_a_subject() -> None:
    named = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(named) == sorted(each.name for each in dataclasses.fields(Subject))


def test_the_smallest_subject_is_as_long_as_the_page_says() -> None:
    found = re.search(r"`(tests/trials/toy_clock\.py)`, (\d+) lines", PAGE)
    assert found is not None
    lines = len((ROOT / found[1]).read_text().splitlines())
    assert abs(lines - int(found[2])) <= 5
