"""What the ledger expects of readings that are easily taken for the opposite."""

from __future__ import annotations

import pytest

from rebalance_lab.analysis.ledger import read_ledger

LEDGER = read_ledger()


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Z3", {"described": "reproduced", "shipped": "reproduced", "real 0.8.2.2": "reproduced"}),
        (
            "Z5b",
            {
                "against Z3": "reproduced",
                "against Z3, with seven members": "reproduced",
                "against range as shipped": "refuted",
                "against range as shipped, with seven members": "refuted",
                "real 0.8.2.2": "refuted",
            },
        ),
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
        (
            "Z9",
            {
                "described, stopping outlasts the retries": "reproduced",
                "shipped, stopping outlasts the retries": "reproduced",
                "described, Kafka's defaults, a stop of 4 s": "refuted",
                "shipped, Kafka's defaults, a stop of 4 s": "refuted",
                "described, Kafka's defaults, a stop of 6.5 s": "reproduced",
                "shipped, Kafka's defaults, a stop of 6.5 s": "reproduced",
            },
        ),
        ("Z10", {"described": "reproduced", "shipped": "reproduced", "real 0.8.2.2": "reproduced"}),
        ("Z12b", {"shipped": "refuted"}),
        ("Z14", {"described": "reproduced", "shipped": "refuted"}),
        (
            "Z16",
            {
                "described, keep.claims.on.conflict=true": "reproduced",
                "shipped, keep.claims.on.conflict=true": "reproduced",
                "described": "does not apply",
                "shipped": "does not apply",
            },
        ),
        (
            "E5b",
            {
                "controlled shutdown, 0.8.2": "reproduced",
                "controlled shutdown, from 0.10 on": "refuted",
                "after a failure, 0.8.0": "reproduced",
                "after a failure, from 0.8.2 on": "refuted",
                "controlled shutdown, real 3.9.1": "refuted",
                "after a failure, real 3.9.1": "refuted",
            },
        ),
        ("E5c", {"all": "refuted"}),
        (
            "E7",
            {
                "the first to return leads": "reproduced",
                "wait for one in sync": "reproduced",
                "the first to return leads, real 3.9.1": "reproduced",
                "wait for one in sync, real 3.9.1": "reproduced",
            },
        ),
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


#: Every reading that is run and holds by construction: a sentence of the text, confirmed by members that
#: were built from it. All others could come out otherwise with the lab as it should be.
BY_CONSTRUCTION = {
    ("Z3", "described"),
    ("Z5a", "described"),
    ("Z5b", "against Z3"),
    ("Z5b", "against Z3, with seven members"),
    ("Z6", "described"),
    ("Z6", "described, with a topic filter"),
    ("Z7b", "described"),
    ("Z14", "described"),
}


def test_what_holds_by_construction() -> None:
    found = {(name, reading.name) for name, _, reading in LEDGER.readings() if reading.by_construction}
    assert found == BY_CONSTRUCTION
    rules = {reading.rules for _, _, reading in LEDGER.readings() if reading.by_construction}
    assert rules == {"described"}, "shipped is built from Kafka's source, not from the text"
