"""Trend fits: for each reading that is a trend, its measure against its size in each world."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name

from rebalance_lab.analysis.ledger import TREND_MEASURES, TREND_SIZES
from rebalance_lab.analysis.tables.cost_fits import FITS, fitted

_KEY = ("position", "scenario", "world", "rules", "change", "measure", "against", "model")


def trend_fits(judged: DataFrame, readings: DataFrame, costs: DataFrame) -> DataFrame:
    """position, fits, and for each world whether its fit `agrees_…` or `disagrees_…`: a row for
    each trend that has points.

    `judged`: position, world, role and first.trial of each history that counts (as in `claim_verdicts`).
    Points are the changes of those that show or deny the claim, if their cost is not in doubt; for a trend
    `without_conflicts` those without a failed attempt. An undecided trial is no point: a live one may be
    undecided because nothing proves that it ran live.
    One point is the mean of all changes of one size: trials of the same size repeat each other, and
    would make the interval narrow without adding a size.
    """
    trends = readings.where(F.col("trend.measure").isNotNull()).select("position", "trend", "scenario", "rules")
    decided = judged.where(F.col("role").isin("shows", "denies"))
    trials = decided.select("position", "world", F.col("first.trial").alias("trial"))
    known = costs.where(F.col("doubt").isNull())
    of_change = known.select("trial", F.col("change").alias("kind"), "retries", *TREND_MEASURES, *TREND_SIZES)
    rows = trials.join(F.broadcast(trends), "position").join(of_change, "trial")
    of_kind = F.col("trend.change").isNull() | (F.col("trend.change") == F.col("kind"))
    points = rows.where(of_kind & (~F.col("trend.without_conflicts") | (F.col("retries") == 0))).select(
        "position",
        "scenario",
        "world",
        F.coalesce("rules", F.lit("")).alias("rules"),
        F.coalesce("trend.change", F.lit("")).alias("change"),
        *(F.col(f"trend.{name}").alias(name) for name in ("measure", "against", "model")),
        _named("trend.against", TREND_SIZES).alias("size"),
        _named("trend.measure", TREND_MEASURES).alias("value"),
    )
    means = points.groupBy(*_KEY, "size").agg(F.avg("value").alias("value"))
    judged = fitted(means, _KEY).join(F.broadcast(trends.select("position", "trend")), "position")
    enough = F.col("sizes") >= F.col("trend.sizes")
    inside = (F.col("low") >= F.col("trend.low")) & (F.col("high") <= F.col("trend.high"))
    outside = (F.col("high") < F.col("trend.low")) | (F.col("low") > F.col("trend.high"))
    return judged.groupBy("position").agg(
        F.array_sort(F.collect_list(F.struct(*FITS.fieldNames()))).alias("fits"),
        *(
            F.bool_or(F.coalesce(enough & held, F.lit(False)) & (F.col("world") == world)).alias(f"{name}_{world}")
            for name, held in (("agrees", inside), ("disagrees", outside))
            for world in ("live", "simulated")
        ),
    )


def _named(name: str, columns: tuple[str, ...]) -> Column:
    """The value of the column that another one names."""
    return reduce(lambda other, one: F.when(F.col(name) == one, F.col(one)).otherwise(other), columns, F.lit(None))
