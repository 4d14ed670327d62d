"""Verdicts of trends: fits of the trials that count, told one by one and judged in one go."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from test_claim_verdicts_table import rows_of_trial
from test_cost_fits_table import cost
from verdict_rows import as_results

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import Claim, Expected, Ledger, Minimum, Quantifier, Reading, Run, Trend
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_results import HERD_COSTS, RESULTS

Row = dict[str, Any]
SIZES = (5, 10, 20, 40)
ONE = Minimum(live=1, simulated=1)


def quadratic(size: int) -> int:
    return size**2 + 13 * size + 6


def trend(**fields: Any) -> Claim:
    known = {"measure": "reads", "model": "quadratic", "between": (0.9, 1.1)}
    run = Run("s", ("herd_cost",), minimum=ONE, needs_fault=False, trend=Trend(**{**known, **fields}))
    reading = Reading("all", Expected.REPRODUCED, "because")
    return Claim("it grows", Quantifier.TREND, "test", (reading,), run)


def trials(of_world: dict[str, dict[int, int]], outcome: str = "clean", **fields: Any) -> tuple[list[Row], list[Row]]:
    """For each world a trial without faults, whose joins cost these reads at these sizes; and its
    control. Rows of OUTCOMES and of HERD_COSTS."""
    outcomes, costs = [], []
    for world, reads in of_world.items():
        none = {"world": world, "faults": 0, "bitten": False}
        outcomes += rows_of_trial(world, {"herd_cost": outcome}, **none)
        outcomes += rows_of_trial(f"{world}-control", {"belief_overlap": "clean"}, control=True, **none)
        costs += [cost(trial=world, world=world, members=size, reads=count, **fields) for size, count in reads.items()]
        # What is another change's, or not whole, or of a control, is no point.
        costs += [
            cost(trial=world, world=world, members=7, reads=10**6, doubt="m1 gave up"),
            cost(trial=f"{world}-control", world=world, members=7, reads=10**6),
        ]
    return outcomes, costs


EXACT = {world: {size: quadratic(size) for size in SIZES} for world in ("processes", "simulated")}
ROUGH = {**EXACT, "processes": {size: quadratic(size) + (60 if size == 20 else 0) for size in SIZES}}
LINEAR = {**EXACT, "processes": {size: 13 * size + size % 3 for size in SIZES}}
FEW = {**EXACT, "processes": {size: quadratic(size) for size in SIZES[:3]}}


def often(size: int, *reads: int) -> tuple[list[Row], list[Row]]:
    """EXACT, and one size many times more."""
    outcomes, costs = trials(EXACT)
    more = [cost(trial=world, world=world, members=size, reads=count) for world in EXACT for count in reads]
    return outcomes, costs + more


def undecided(of_world: dict[str, dict[int, int]]) -> tuple[list[Row], list[Row]]:
    """One size from trials that show it, all sizes from others of which one proves nothing."""
    outcomes, costs = trials({world: {SIZES[0]: quadratic(SIZES[0])} for world in of_world})
    for world, reads in of_world.items():
        name = f"{world}-edited"
        fields = {"world": world, "faults": 0, "bitten": False, "unproved": "it names no boot id"}
        outcomes += rows_of_trial(name, {"herd_cost": "clean"}, **fields)
        costs += [cost(trial=name, world=world, members=size, reads=count) for size, count in reads.items()]
    return outcomes, costs


CASES = {
    "undecided": (trend(), undecided(EXACT)),
    "exact": (trend(), trials(EXACT)),
    "exponent": (trend(model="exponent", between=(1.2, 1.8)), trials(EXACT)),
    "another measure": (trend(measure="writes", model="exponent", between=(0.9, 1.1)), trials(EXACT)),
    "against the size before": (trend(against="before", model="exponent"), trials(EXACT)),
    "joins only": (trend(change="join"), trials(EXACT)),
    "leaves only": (trend(change="leave"), trials(EXACT)),
    "rough": (trend(), trials(ROUGH)),
    "linear": (trend(), trials(LINEAR)),
    "often": (trend(), often(20, *[quadratic(20) - 60, quadratic(20) + 60] * 8)),
    "few": (trend(), trials(FEW)),
    "violated": (trend(), trials(EXACT, "violated")),
}


@pytest.fixture(scope="module")
def told(local_spark: LocalSpark) -> dict[str, Row]:
    return judged(local_spark.session)


def judged(spark: SparkSession) -> dict[str, Row]:
    claims, outcomes, costs = {}, [], []
    for name, (claim, (of_outcomes, of_costs)) in CASES.items():
        run = Run(name, ("herd_cost",), minimum=ONE, needs_fault=False, trend=claim.run.trend)
        claims[name] = Claim("it grows", Quantifier.TREND, "test", claim.readings, run)
        outcomes += [row | {"trial": f"{name}/{row['trial']}", "scenario": name} for row in of_outcomes]
        costs += [row | {"trial": f"{name}/{row['trial']}"} for row in of_costs]
    readings = readings_table(spark, Ledger(claims))
    frame = claim_verdicts(table(spark, as_results(outcomes), RESULTS), readings, table(spark, costs, HERD_COSTS))
    return {row["claim"]: row for row in rows_of(frame)}


CLEAN = "herd_cost clean in 1 of 1 live trials (21 to 100 %) and 1 of 1 simulated trials (21 to 100 %)"


def test_fits_that_lie_in_the_range_reproduce_it(told: dict[str, Row]) -> None:
    row = told["exact"]
    assert (row["verdict"], row["status"], row["live"], row["simulated"]) == ("reproduced", "as expected", 1, 1)
    assert row["why"] == (
        f"{CLEAN}; quadratic coefficient of reads against members "
        "1.00 (1.00 to 1.00) in live trials, 1.00 (1.00 to 1.00) in simulated trials, expected between 0.90 and 1.10; "
        "the controls are clean"
    )
    fits = {fit["world"]: fit for fit in row["fits"]}
    assert set(fits) == {"live", "simulated"}
    assert fits["live"]["coefficients"] == pytest.approx([6, 13, 1])
    assert (fits["live"]["points"], fits["live"]["sizes"], fits["live"]["model"]) == (4, 4, "quadratic")


def test_a_trend_is_of_the_model_measure_size_and_change_it_names(told: dict[str, Row]) -> None:
    assert told["exponent"]["verdict"] == "reproduced"
    assert told["exponent"]["fits"][0]["estimate"] == pytest.approx(1.48, abs=0.05)
    assert told["joins only"]["verdict"] == "reproduced"
    assert (told["leaves only"]["verdict"], told["leaves only"]["fits"]) == ("unknown", [])
    assert told["leaves only"]["why"] == (
        "needs 4 sizes in live trials (so far 0); needs 4 sizes in simulated trials (so far 0)"
    )
    for name in ("another measure", "against the size before"):  # all zero: nothing grows from there
        assert told[name]["verdict"] == "unknown"
        assert [fit["estimate"] for fit in told[name]["fits"]] == [None, None]


def test_a_fit_outside_the_range_refutes_it(told: dict[str, Row]) -> None:
    row = told["linear"]
    assert (row["verdict"], row["status"], row["witness"]) == ("refuted", "surprise", None)
    assert row["why"].startswith(f"{CLEAN}; quadratic coefficient")


def test_an_interval_that_is_too_wide_decides_nothing(told: dict[str, Row]) -> None:
    row = told["rough"]
    assert row["verdict"] == "unknown"
    assert row["why"].startswith("the live quadratic coefficient of reads against members, ")
    assert row["why"].endswith(", is neither wholly between 0.90 and 1.10 nor wholly outside")


def test_each_size_is_one_point_however_often_it_was_run(told: dict[str, Row]) -> None:
    """The mean of its changes: their spread neither widens the interval, nor does their number narrow it."""
    assert told["often"]["verdict"] == "reproduced"
    for fit in told["often"]["fits"]:
        assert (fit["points"], fit["sizes"]) == (4, 4)
        assert [fit["low"], fit["high"]] == pytest.approx([1, 1])


def test_few_sizes_decide_nothing(told: dict[str, Row]) -> None:
    assert told["few"]["verdict"] == "unknown"
    assert told["few"]["why"] == "needs 4 sizes in live trials (so far 3)"


def test_an_undecided_trial_is_no_point(told: dict[str, Row]) -> None:
    row = told["undecided"]
    assert [(fit["world"], fit["sizes"]) for fit in row["fits"]] == [("live", 1), ("simulated", 1)]
    assert row["verdict"] == "unknown"
    assert "needs 4 sizes in live trials (so far 1)" in row["why"]


def test_one_trial_that_denies_it_refutes_it(told: dict[str, Row]) -> None:
    row = told["violated"]
    assert (row["verdict"], row["status"], row["witness"]) == ("refuted", "surprise", "violated/simulated")
    assert row["why"].startswith("herd_cost violated in 1 of 1 live trials (21 to 100 %)")
