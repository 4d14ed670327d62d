"""What the ledger expects of readings that are easily taken for the opposite."""

from __future__ import annotations

import pytest

from rebalance_lab.analysis.ledger import read_ledger

LEDGER = read_ledger()


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Z3", {"described": "reproduced", "shipped": "reproduced", "real 0.8.2.2": "reproduced"}),
        ("Z5b", {"against Z3": "reproduced", "against range as shipped": "refuted", "real 0.8.2.2": "refuted"}),
        (
            "Z6",
            {
                "described": "reproduced",
                "described, with a topic filter": "reproduced",
                "shipped": "refuted",
                "real 0.8.2.2": "refuted",
            },
        ),
        ("Z7b", {"described": "reproduced", "shipped": "refuted", "real 0.8.2.2": "refuted"}),
        ("Z10", {"all": "reproduced", "real 0.8.2.2": "reproduced"}),
        ("Z12b", {"shipped": "refuted"}),
        ("Z14", {"described": "reproduced", "shipped": "refuted"}),
        ("Z16", {"keep.claims.on.conflict=true": "reproduced", "described": "refuted", "shipped": "refuted"}),
        ("E5c", {"all": "refuted"}),
        ("G4", {"dealing": "reproduced", "default": "refuted"}),
        (
            "A3",
            {
                "moves": "reproduced",
                "published row, general path": "reproduced",
                "published row, constrained path": "refuted",
            },
        ),
    ],
)
def test_expected_verdicts(claim: str, expected: dict[str, str]) -> None:
    assert {reading.name: reading.expected.value for reading in LEDGER.claims[claim].readings} == expected
