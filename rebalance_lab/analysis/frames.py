"""Between Spark's schemas and Arrow's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of Python for `schema`."""
    return to_arrow_schema(schema)


def table(spark: SparkSession, rows: list[dict[str, Any]], schema: StructType) -> DataFrame:
    """A DataFrame of rows that the driver has."""
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=arrow_schema(schema)), schema=schema)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows of a DataFrame, on the driver; structs as dicts, maps as lists of pairs."""
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows
