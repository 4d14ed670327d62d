"""The ledger as a table: what claim verdicts join trials with."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, StringType, StructType

from rebalance_lab.analysis.frames import table
from rebalance_lab.analysis.ledger import Claim, Condition, Ledger, Reading, Run, minimum_of, quantifier_of, run_of
from rebalance_lab.analysis.tables.schemas import column

_CONDITION = StructType(
    [
        column("parameter", StringType()),
        column("operator", StringType()),
        column("bound", StringType(), null=True),
        column("text", StringType(), null=True),
    ]
)

#: `low` and `high`: the ends of what the estimate should lie between.
_TREND = StructType(
    [
        column("measure", StringType(), null=True),
        column("against", StringType(), null=True),
        column("model", StringType(), null=True),
        column("change", StringType(), null=True),
        column("without_conflicts", BooleanType(), null=True),
        column("low", DoubleType(), null=True),
        column("high", DoubleType(), null=True),
        column("sizes", LongType(), null=True),
    ]
)

#: One row per reading of the ledger. Without `scenario` it is not run, for the reason `waits_for`; without
#: `trend.measure` it is not a trend. `quantifier`, `checks`: how the reading is judged; if it is expected not to apply,
#: they are `always` and the checks of its premise.
READINGS = StructType(
    [
        column("position", LongType()),
        column("claim", StringType()),
        column("reading", StringType()),
        column("statement", StringType()),
        column("quantifier", StringType()),
        column("expected", StringType()),
        column("by_construction", BooleanType()),
        column("waits_for", StringType(), null=True),
        column("scenario", StringType(), null=True),
        column("rules", StringType(), null=True),
        column("generation", StringType(), null=True),
        column("checks", ArrayType(StringType(), False)),
        column("conditions", ArrayType(_CONDITION, False)),
        column("needs_fault", BooleanType()),
        column("minimum_live", LongType()),
        column("minimum_simulated", LongType()),
        column("refute_live", LongType()),
        column("refute_simulated", LongType()),
        column("trend", _TREND, null=True),
    ]
)


def readings_table(spark: SparkSession, ledger: Ledger) -> DataFrame:
    """The ledger, schema READINGS."""
    return table(spark, reading_rows(ledger), READINGS)


def reading_rows(ledger: Ledger) -> list[dict[str, object]]:
    """The rows of READINGS."""
    return [_row(n, *reading) for n, reading in enumerate(ledger.readings())]


def _row(position: int, name: str, claim: Claim, reading: Reading) -> dict[str, object]:
    run = run_of(claim, reading)
    quantifier = quantifier_of(claim, reading)
    minimum = minimum_of(quantifier, run)
    conditions = [] if run is None else [_condition(each) for each in (*run.conditions, *reading.conditions)]
    return {
        "position": position,
        "claim": name,
        "reading": reading.name,
        "statement": reading.statement or claim.statement,
        "quantifier": quantifier.value,
        "expected": reading.expected.value,
        "by_construction": reading.by_construction,
        "waits_for": reading.waits_for or claim.waits_for,
        "scenario": None if run is None else run.scenario,
        "rules": reading.rules,
        "generation": reading.generation,
        "checks": [] if run is None else list(run.checks),
        "conditions": conditions,
        "needs_fault": run is None or run.needs_fault,
        "minimum_live": minimum.live,
        "minimum_simulated": minimum.simulated,
        "refute_live": 0 if run is None else run.to_refute.live,
        "refute_simulated": 0 if run is None else run.to_refute.simulated,
        "trend": _trend(run),
    }


def _condition(condition: Condition) -> dict[str, object]:
    return {name: getattr(condition, name) for name in _CONDITION.fieldNames()}


def _trend(run: Run | None) -> dict[str, object]:
    if run is None or run.trend is None:
        return dict.fromkeys(_TREND.fieldNames())
    trend = run.trend
    return {
        "measure": trend.measure,
        "against": trend.against,
        "model": trend.model,
        "change": trend.change,
        "without_conflicts": trend.without_conflicts,
        "low": trend.between[0],
        "high": trend.between[1],
        "sizes": trend.sizes,
    }
