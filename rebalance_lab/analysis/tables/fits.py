"""Numbers fitted against the size of a group: the cost of changes, and the measures of readings that are trends."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import StructType

from rebalance_lab.analysis.fitting import Model, fit
from rebalance_lab.analysis.frames import arrow_schema, schema_of
from rebalance_lab.analysis.ledger import TREND_MEASURES, TREND_SIZES
from rebalance_lab.analysis.results import Fit

#: One row a scenario, world, rule set, change, measure and model; the fields are those of
#: `results.Fit`.
FITS = schema_of(Fit)

#: What is fitted: every cost's exponent, and the quadratic that the formula has for reads.
MEASURES = ("reads", "writes", "notifications", "rebalances")
SIZES = ("members", "before")
FITTED = (*((measure, Model.EXPONENT) for measure in MEASURES), ("reads", Model.QUADRATIC))

_OF = ("scenario", "world", "rules", "change")
_KEY = (*_OF, "measure", "against", "model")

#: What a fit adds to its key.
_ANSWER = StructType([field for field in FITS.fields if field.name not in _KEY])


def cost_fits(costs: DataFrame) -> DataFrame:
    """HERD_COSTS to FITS. Only changes of trials in earnest (no plant, no control) whose cost is not in
    doubt: of others it is another experiment's, or not whole."""
    earnest = costs.where(F.col("doubt").isNull() & ~F.col("control") & F.col("plant").isNull())
    wanted = [
        F.struct(F.lit(measure).alias("measure"), F.lit(model.value).alias("model"), F.col(measure).alias("value"))
        for measure, model in FITTED
    ]
    points = earnest.select(*_OF, F.col("members").alias("size"), F.inline(F.array(*wanted)))
    return fitted(points.withColumn("against", F.lit("members")), _KEY).select(FITS.fieldNames())


def fitted(points: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Points (the columns of `key`, `model` among them, `size` and `value`) to one row for each
    key, with what was fitted."""
    schema = StructType([*(points.schema[name] for name in key), *_ANSWER.fields])
    return points.select(*key, "size", "value").groupBy(*key).applyInArrow(_fitting(key, schema), schema)


def _fitting(key: tuple[str, ...], schema: StructType) -> Callable[[pa.Table], pa.Table]:
    def of_group(rows: pa.Table) -> pa.Table:
        same = {name: rows.column(name)[0].as_py() for name in key}
        sizes, values = rows.column("size").to_pylist(), rows.column("value").to_pylist()
        found = fit(Model(same["model"]), sizes, values)
        answer = {"points": len(sizes), "sizes": len(set(sizes)), "coefficients": []}
        if found is not None:
            answer |= {"estimate": found.estimate, "low": found.low, "high": found.high}
            answer["coefficients"] = list(found.coefficients)
        return pa.Table.from_pylist([same | answer], schema=arrow_schema(schema))

    return of_group


# -- trends ---------------------------------------------------------------------------------------


_TREND_KEY = ("position", "scenario", "world", "rules", "change", "measure", "against", "model")


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
    means = points.groupBy(*_TREND_KEY, "size").agg(F.avg("value").alias("value"))
    judged = fitted(means, _TREND_KEY).join(F.broadcast(trends.select("position", "trend")), "position")
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
