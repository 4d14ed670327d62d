"""Trials counted by kind, and a sample of each kind: what a page needs of more trials than the driver can hold."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import ArrayType, StringType, StructType

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.results import KindCount, OutcomeCount
from rebalance_lab.analysis.tables.schemas import column

_PARAMETER = StructType([column("name", StringType()), column("value", StringType())])


def _with_parameters(rows: type) -> StructType:
    own = column("parameters", ArrayType(_PARAMETER, False))
    return StructType([own if field.name == "parameters" else field for field in schema_of(rows)])


#: One row a kind of trials; and one a kind, check and outcome. The fields are those of the classes.
KIND_COUNTS, OUTCOME_COUNTS = map(_with_parameters, (KindCount, OutcomeCount))

_KIND = ("scenario", "world", "rules", "control", "plant", "parameters")


def kind_counts(results: DataFrame) -> DataFrame:
    """RESULTS to KIND_COUNTS, in no order."""
    counted = results.select(*_KIND[:-1], _parameters(), F.size("findings").alias("size"))
    return counted.groupBy(*_KIND).agg(
        F.count("*").alias("trials"), F.sum((F.col("size") > 0).cast("long")).alias("judged")
    )


def outcome_counts(results: DataFrame) -> DataFrame:
    """RESULTS to OUTCOME_COUNTS, in no order."""
    found = results.select("trial", "seed", *_KIND[:-1], _parameters(), F.inline("findings"))
    return found.groupBy(*_KIND, "check", "outcome").agg(
        F.count("*").alias("trials"),
        F.min("longest_us").alias("shortest_us"),
        F.max("longest_us").alias("longest_us"),
        F.min(F.struct("seed", "trial"))["trial"].alias("first"),
    )


def first_trials(results: DataFrame, most: int) -> DataFrame:
    """RESULTS to the ids of at most `most` trials: of each kind as many, those with the first seeds."""
    listed = results.select("trial", "seed", *_KIND[:-1], _parameters())
    number = F.row_number().over(Window.partitionBy(*_KIND).orderBy("seed", "trial"))
    return listed.withColumn("number", number).orderBy("number", *_KIND, "trial").limit(most).select("trial")


def _parameters() -> Column:
    entries = F.map_entries("parameters")
    named = F.transform(entries, lambda each: F.struct(each["key"].alias("name"), each["value"].alias("value")))
    return F.array_sort(named).alias("parameters")
