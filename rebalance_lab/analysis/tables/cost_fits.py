"""Cost fits: what a change costs a group, against the group's size."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import StructType

from rebalance_lab.analysis.fitting import Model, fit
from rebalance_lab.analysis.frames import arrow_schema, schema_of
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
