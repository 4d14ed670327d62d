"""Scenario summaries: each measure over all trials of one kind, as percentiles."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import ArrayType, StringType, StructType

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.results import MEASURES, Summary
from rebalance_lab.analysis.tables.schemas import column

_SETTING = StructType([column("name", StringType()), column("value", StringType())])

#: One row a kind of trial and measure; the fields are those of `results.Summary`.
SUMMARIES = StructType(
    [
        column("settings", ArrayType(_SETTING, False)) if field.name == "settings" else field
        for field in schema_of(Summary)
    ]
)

_KIND = ("scenario", "world", "rules", "control", "plant", "settings")
_SHARES = (0.5, 0.9, 0.99)


def scenario_summaries(results: DataFrame, measures: DataFrame) -> DataFrame:
    """RESULTS and TRIAL_MEASURES to SUMMARIES, in no order.

    Trials are of one kind if scenario, world, rules, control, plant and `settings` are equal. Settings are the
    parameters that are not the same in all trials of their scenario. Percentiles are exact, interpolated linearly
    between two trials. There is a CHECK_longest_us for each check that measured a length in any trial, over the
    trials to which the check applies.
    """
    kinds = _kinds(results)
    values = _of_trials(measures).unionByName(_of_checks(results))
    value = F.col("value").cast("double")
    shares = F.percentile(value, F.array(*map(F.lit, _SHARES)))
    found = (
        kinds.join(values, "trial")
        .groupBy(*_KIND, "measure")
        .agg(
            F.count("*").alias("trials"),
            F.min(value).alias("least"),
            shares.alias("shares"),
            F.max(value).alias("most"),
            F.avg(value).alias("mean"),
        )
    )
    named = {f"p{round(100 * share)}": F.col("shares")[n] for n, share in enumerate(_SHARES)}
    return found.withColumns(named).select(SUMMARIES.fieldNames())


def _kinds(results: DataFrame) -> DataFrame:
    """trial, and the columns of _KIND."""
    named = results.select("scenario", F.explode("parameters").alias("name", "value"))
    counted = named.groupBy("scenario", "name").agg(
        (F.min("value") != F.max("value")).alias("differs"), F.count("*").alias("having")
    )
    size = results.groupBy("scenario").agg(F.count("*").alias("size"))
    # A parameter that only some of the trials have counts as varied, too.
    varied = counted.join(F.broadcast(size), "scenario").where(F.col("differs") | (F.col("having") < F.col("size")))
    names = varied.groupBy("scenario").agg(F.collect_set("name").alias("varied"))
    whole = results.select("trial", *_KIND[:-1], "parameters").join(F.broadcast(names), "scenario", "left")
    entries = F.transform(F.map_entries("parameters"), lambda each: F.struct(each["key"].alias("name"), each["value"]))
    settings = F.array_sort(F.filter(entries, lambda each: F.array_contains("varied", each["name"])))
    none = F.array().cast(ArrayType(_SETTING, False))
    return whole.select("trial", *_KIND[:-1], F.coalesce(settings, none).alias("settings"))


def _of_trials(measures: DataFrame) -> DataFrame:
    pairs = F.array(*(F.struct(F.lit(name).alias("measure"), F.col(name).alias("value")) for name in MEASURES))
    return measures.select("trial", F.inline(pairs))


def _of_checks(results: DataFrame) -> DataFrame:
    found = results.select("trial", F.inline("findings"))
    measuring = found.groupBy("check").agg(F.max("longest_us").alias("most")).where("most > 0").select("check")
    measure = F.concat("check", F.lit("_longest_us")).alias("measure")
    return found.join(F.broadcast(measuring), "check").select("trial", measure, F.col("longest_us").alias("value"))
