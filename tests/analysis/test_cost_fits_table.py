"""Cost fits by Spark: which changes are points, and of which fit."""

from __future__ import annotations

import random
from typing import Any

from pyspark.sql import SparkSession

from rebalance_lab.analysis.fitting import Model, fit
from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.tables.fits import FITS, FITTED, cost_fits
from rebalance_lab.analysis.tables.trial_results import HERD_COSTS


def cost(**fields: Any) -> dict[str, Any]:
    """A row of HERD_COSTS."""
    text = {"trial": "t", "scenario": "herd", "world": "simulated", "rules": "shipped", "group": "g", "change": "join"}
    numbers = {name: 0 for name in HERD_COSTS.fieldNames() if name not in (*text, "plant", "control", "doubt")}
    return {**text, **numbers, "plant": None, "control": False, "doubt": None, **fields}


def random_cost(dice: random.Random) -> dict[str, Any]:
    members = dice.choice([5, 10, 20, 40])
    return cost(
        scenario=dice.choice(["herd", "storm"]),
        world=dice.choice(["simulated", "processes"]),
        rules=dice.choice(["described", "shipped"]),
        change=dice.choice(["join", "leave", "broker"]),
        members=members,
        reads=members**2 + dice.randint(0, 50),
        writes=dice.randint(1, 60),
        notifications=dice.choice([0, 1, 2, 3]),
        rebalances=members + dice.choice([0, 0, 1]),
        control=dice.random() < 0.1,
        plant=dice.choice([None, None, None, "bug"]),
        doubt=None if dice.random() < 0.9 else "m1 gave up",
    )


def oracle(costs: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Every fit by itself, the plain way."""
    rows = {}
    names = ("scenario", "world", "rules", "change")
    counted = [row for row in costs if row["doubt"] is None and not row["control"] and row["plant"] is None]
    for key in sorted({tuple(row[name] for name in names) for row in counted}):
        same = [row for row in counted if tuple(row[name] for name in names) == key]
        sizes = [row["members"] for row in same]
        for measure, model in FITTED:
            found = fit(model, sizes, [row[measure] for row in same])
            told = {"points": len(same), "sizes": len(set(sizes)), "found": found}
            rows[*key, measure, "members", model.value] = told
    return rows


def test_the_table_says_what_its_oracle_says(spark: SparkSession) -> None:
    dice = random.Random(3)
    costs = [random_cost(dice) for _ in range(400)]
    frame = cost_fits(table(spark, costs, HERD_COSTS))
    assert frame.schema.simpleString() == FITS.simpleString()
    expected, seen = oracle(costs), set()
    for row in rows_of(frame):
        key = tuple(row[name] for name in ("scenario", "world", "rules", "change", "measure", "against", "model"))
        told = expected.pop(key)
        found = told["found"]
        assert (row["points"], row["sizes"]) == (told["points"], told["sizes"])
        assert row["coefficients"] == ([] if found is None else list(found.coefficients))
        fitted = (None,) * 3 if found is None else (found.estimate, found.low, found.high)
        assert (row["estimate"], row["low"], row["high"]) == fitted
        seen.add((row["model"], found is None))
    assert expected == {}
    assert {(Model.EXPONENT, False), (Model.EXPONENT, True), (Model.QUADRATIC, False)} <= seen


def test_without_changes_there_are_no_fits(spark: SparkSession) -> None:
    assert rows_of(cost_fits(table(spark, [], HERD_COSTS))) == []
