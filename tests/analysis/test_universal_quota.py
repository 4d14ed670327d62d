"""Claim Z1 by the ledger's own numbers: 200 simulated and 5 live trials, not one less."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.herd_costs import HERD_COSTS
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_outcomes import OUTCOMES

Z1 = Ledger({"Z1": read_ledger().claims["Z1"]})
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


def verdict(spark: SparkSession, outcomes: list[Row]) -> Row:
    no_costs = table(spark, [], HERD_COSTS)
    (row,) = rows_of(claim_verdicts(table(spark, outcomes, OUTCOMES), readings_table(spark, Z1), no_costs))
    return row


def test_the_full_number_reproduces(spark: SparkSession) -> None:
    row = verdict(spark, trials(5, 200))
    assert (row["verdict"], row["status"], row["live"], row["simulated"]) == ("reproduced", "as expected", 5, 200)


@pytest.mark.parametrize(
    ("live", "simulated", "why"),
    [
        (5, 199, "needs one more simulated trial (so far 199 of 199 show it)"),
        (4, 200, "needs one more live trial (so far 4 of 4 show it)"),
    ],
)
def test_less_is_unknown_with_counts(spark: SparkSession, live: int, simulated: int, why: str) -> None:
    row = verdict(spark, trials(live, simulated))
    assert (row["verdict"], row["live"], row["simulated"], row["why"]) == ("unknown", live, simulated, why)


def test_one_counter_example_outweighs_all(spark: SparkSession) -> None:
    row = verdict(spark, [*trials(5, 200), crash("simulated", 777, "violated")])
    assert (row["verdict"], row["status"], row["witness"]) == ("refuted", "surprise", "simulated-777")
