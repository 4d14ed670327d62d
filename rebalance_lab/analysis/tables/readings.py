"""The ledger as a table: what claim verdicts join trials with."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from rebalance_lab.analysis.frames import plain_row, schema_of, table
from rebalance_lab.analysis.ledger import Claim, Condition, Ledger, Reading, Run, minimum_of, quantifier_of, run_of


@dataclass(frozen=True, slots=True)
class TrendRow:
    """A `Trend`; all None where there is none. `low` and `high`: the ends of what the estimate should lie between."""

    measure: str | None = None
    against: str | None = None
    model: str | None = None
    change: str | None = None
    without_conflicts: bool | None = None
    low: float | None = None
    high: float | None = None
    sizes: int | None = None


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """A measure that a verdict says, and what it is in words."""

    measure: str
    what: str


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """A reading of the ledger. Without `scenario` it is not run, for the reason `waits_for`; without `trend.measure` it
    is not a trend. `quantifier`, `checks`: how the reading is judged; if it is expected not to apply, they are `always`
    and the checks of its premise."""

    position: int
    claim: str
    reading: str
    statement: str
    quantifier: str
    expected: str
    by_construction: bool
    waits_for: str | None
    scenario: str | None
    rules: str | None
    generation: str | None
    checks: tuple[str, ...]
    clean: tuple[str, ...]
    measures: tuple[MeasureRow, ...]
    conditions: tuple[Condition, ...]
    needs_fault: bool
    minimum_live: int
    minimum_simulated: int
    refute_live: int
    refute_simulated: int
    trend: TrendRow


#: One row per reading of the ledger.
READINGS = schema_of(ReadingRow)


def readings_table(spark: SparkSession, ledger: Ledger) -> DataFrame:
    """The ledger, schema READINGS."""
    return table(spark, reading_rows(ledger), READINGS)


def reading_rows(ledger: Ledger) -> list[dict[str, object]]:
    """The rows of READINGS."""
    return [plain_row(_row(n, *reading), READINGS) for n, reading in enumerate(ledger.readings())]


def _row(position: int, name: str, claim: Claim, reading: Reading) -> ReadingRow:
    run = run_of(claim, reading)
    quantifier = quantifier_of(claim, reading)
    minimum = minimum_of(quantifier, run)
    return ReadingRow(
        position=position,
        claim=name,
        reading=reading.name,
        statement=reading.statement or claim.statement,
        quantifier=quantifier.value,
        expected=reading.expected.value,
        by_construction=reading.by_construction,
        waits_for=reading.waits_for or claim.waits_for,
        scenario=None if run is None else run.scenario,
        rules=reading.rules,
        generation=reading.generation,
        checks=() if run is None else run.checks,
        clean=() if run is None else run.clean,
        measures=() if run is None else tuple(MeasureRow(*each) for each in run.measures.items()),
        conditions=() if run is None else (*run.conditions, *reading.conditions),
        needs_fault=run is None or run.needs_fault,
        minimum_live=minimum.live,
        minimum_simulated=minimum.simulated,
        refute_live=0 if run is None else run.to_refute.live,
        refute_simulated=0 if run is None else run.to_refute.simulated,
        trend=_trend(run),
    )


def _trend(run: Run | None) -> TrendRow:
    if run is None or run.trend is None:
        return TrendRow()
    trend = run.trend
    low, high = trend.between
    return TrendRow(
        trend.measure, trend.against, trend.model, trend.change, trend.without_conflicts, low, high, trend.sizes
    )
