"""Between Spark's schemas, Arrow's and the classes of `results`."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, StringType, StructType

_TYPES: dict[Any, tuple[Any, bool]] = {
    str: (StringType(), False),
    int: (LongType(), False),
    float: (DoubleType(), False),
    bool: (BooleanType(), False),
    str | None: (StringType(), True),
    int | None: (LongType(), True),
    float | None: (DoubleType(), True),
    tuple[float, ...]: (ArrayType(DoubleType(), False), False),
}


def schema_of(rows: type) -> StructType:
    """The schema of a table whose rows become this dataclass: its fields, in their order."""
    hints = get_type_hints(rows)
    schema = StructType()
    for field in dataclasses.fields(rows):
        kind, nullable = _TYPES[hints[field.name]]
        schema.add(field.name, kind, nullable)
    return schema


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
