"""docs/ledger.md: every reading that is run was decided to be evidence or not, as the ledger has it."""

from __future__ import annotations

import re
from pathlib import Path

from rebalance_lab.analysis.ledger import Status, read_ledger, run_of

PAGE = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()

#: (claims, readings, yes or no) of the page's table.
DECIDED = re.findall(r"^\| ([EPZ][^|]+) \| ([^|]+) \| (yes|no) \| [^|]+ \|$", PAGE, re.MULTILINE)


def decisions(claim: str, reading: str) -> list[str]:
    """What the page says of a reading."""
    return [
        said
        for claims, readings, said in DECIDED
        if claim in claims.split(", ")
        and (readings == "all readings" or reading in re.split(r"; |, (?!with )", readings))
    ]


def test_each_reading_that_is_run_is_decided_once_and_as_the_ledger_has_it() -> None:
    for name, claim, reading in read_ledger().readings():
        if run_of(claim, reading) is not None:
            expected = ["yes" if reading.by_construction else "no"]
            assert decisions(name, reading.name) == expected, (name, reading.name)


def test_every_status_is_explained() -> None:
    for status in Status:
        assert f"\n| {status} | " in PAGE
