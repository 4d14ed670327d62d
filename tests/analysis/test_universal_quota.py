"""Claim Z1 by the ledger's own numbers: 200 simulated and 5 live trials, not one less."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from verdict_rows import as_results

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_results import HERD_COSTS, RESULTS

Z1 = read_ledger().claims["Z1"]
Row = dict[str, object]


def crash(world: str, n: int, outcome: str = "clean", *, control: bool = False) -> Row:
    """The row of OUTCOMES that Z1 looks at."""
    name = f"{world}-{n}{'-control' if control else ''}"
    return {
        "trial": name,
        "scenario": "crash",
        "world": world,
        "generation": "zk",
        "rules": "described",
        "seed": n,
        "control": control,
        "plant": None,
        "parameters": [],
        "history_sha256": f"history of {name}",
        "faults": 0 if control else 1,
        "bitten": not control,
        "unproved": None,
        "check": "registration",
        "outcome": outcome,
        "why": "",
        "witness": [],
        "longest_us": 0,
        "count": 0,
    }


def trials(live: int, simulated: int) -> list[Row]:
    return [
        crash("processes", 0, control=True),
        crash("simulated", 0, control=True),
        *(crash("processes", n) for n in range(live)),
        *(crash("simulated", n) for n in range(simulated)),
    ]


def undecided(live: int, simulated: int) -> list[Row]:
    """Beyond those that `trials` has."""
    return [
        *(crash("processes", 1000 + n, "unknown") for n in range(live)),
        *(crash("simulated", 1000 + n, "unknown") for n in range(simulated)),
    ]


CASES = {
    "enough": trials(5, 200),
    "one simulated too few": trials(5, 199),
    "one live too few": trials(4, 200),
    "a tenth undecided": [*trials(5, 200), *undecided(5, 22)],
    "a tenth undecided and one more": [*trials(5, 200), *undecided(0, 23)],
    "half of the live undecided and one more": [*trials(5, 200), *undecided(6, 0)],
    "one seed under many names": trials(5, 1) + [crash("simulated", n) | {"seed": 0} for n in range(1, 200)],
    "a counter-example": [*trials(5, 200), crash("simulated", 777, "violated")],
}


@pytest.fixture(scope="module")
def told(local_spark: LocalSpark) -> dict[str, Row]:
    """The verdict of each case: a scenario and a claim of its own."""
    spark = local_spark.session
    first = Z1.readings[:1]  # of all members; another reading is of real ones alone
    claims = {name: replace(Z1, run=replace(Z1.run, scenario=name), readings=first) for name in CASES}
    outcomes = [
        row | {"scenario": name, "trial": f"{name}/{row['trial']}"} for name, rows in CASES.items() for row in rows
    ]
    readings, no_costs = readings_table(spark, Ledger(claims)), table(spark, [], HERD_COSTS)
    return {
        row["claim"]: row
        for row in rows_of(claim_verdicts(table(spark, as_results(outcomes), RESULTS), readings, no_costs))
    }


def test_the_full_number_reproduces(told: dict[str, Row]) -> None:
    row = told["enough"]
    assert (row["verdict"], row["status"], row["live"], row["simulated"]) == ("reproduced", "as expected", 5, 200)


@pytest.mark.parametrize(
    ("case", "live", "simulated", "why"),
    [
        ("one simulated too few", 5, 199, "needs one more simulated trial (so far 199 of 199 show it)"),
        ("one live too few", 4, 200, "needs one more live trial (so far 4 of 4 show it)"),
    ],
)
def test_less_is_unknown_with_counts(told: dict[str, Row], case: str, live: int, simulated: int, why: str) -> None:
    row = told[case]
    assert (row["verdict"], row["live"], row["simulated"], row["why"]) == ("unknown", live, simulated, why)


def test_most_trials_must_be_decided(told: dict[str, Row]) -> None:
    for case, short_of in (
        ("a tenth undecided and one more", "fewer than 90 % of simulated trials are decided"),
        ("half of the live undecided and one more", "fewer than 50 % of live trials are decided"),
    ):
        row = told[case]
        assert (row["verdict"], row["live"], row["simulated"]) == ("unknown", 5, 200)
        assert str(row["why"]).startswith(f"{short_of}; undecided: ")
    row = told["a tenth undecided"]
    assert row["verdict"] == "reproduced"
    assert "the controls are clean; undecided: 5 live and 22 simulated trials (no fault bit" in str(row["why"])


def test_names_do_not_make_one_seed_many(told: dict[str, Row]) -> None:
    row = told["one seed under many names"]
    assert (row["verdict"], row["simulated"]) == ("unknown", 1)
    assert "(199 not counted: same seed or history as another trial)" in str(row["why"])


def test_one_counter_example_outweighs_all(told: dict[str, Row]) -> None:
    row = told["a counter-example"]
    assert (row["verdict"], row["status"]) == ("refuted", "surprise")
    assert row["witness"] == "a counter-example/simulated-777"
