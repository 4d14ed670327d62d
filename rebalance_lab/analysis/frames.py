"""Conversions between Spark's schemas and rows, Arrow's, and the classes of `results`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import EnumType
from functools import cache, partial
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from rebalance_lab.analysis.tables.schemas import EVENT_ID, column
from rebalance_lab.history.events import EventId

T = TypeVar("T")

#: The column of a row's task.
_TASK = "task"

#: Rows that are dicts at once.
_CHUNK_ROWS = 1024

#: Spark's type of a field's. Enums are their values.
_TYPES: dict[Any, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
    EventId: EVENT_ID,
    tuple[tuple[str, str], ...]: MapType(StringType(), StringType(), False),
}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a dataclass's fields, in their order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def schema_of(rows: type) -> StructType:
    """The schema of a table whose rows become this dataclass: its fields, in their order."""
    schema = StructType()
    for name, hint in _hints(rows).items():
        schema.add(name, *_type(hint))
    return schema


def _type(hint: Any) -> tuple[DataType, bool]:
    """Spark's type, and whether the column may be null."""
    if type(None) in get_args(hint):  # of `kind | None`
        return _type(get_args(hint)[0])[0], True
    if hint in _TYPES:
        return _TYPES[hint], False
    if isinstance(hint, type):
        return (schema_of(hint) if dataclasses.is_dataclass(hint) else _TYPES[str]), False
    item, _ = get_args(hint)  # of tuple[item, ...]
    return ArrayType(_type(item)[0], False), False


def arrow_rows(kind: type, rows: Iterable[Any]) -> pa.Table:
    """Rows of the dataclass `kind` as an Arrow table; its schema is that of `schema_of`."""
    schema = schema_of(kind)
    return pa.Table.from_pylist([plain_row(row, schema) for row in rows], schema=arrow_schema(schema))


def wide(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows that do not all have the same columns, in the order in which the columns first occur; null where a
    row has none. The types are those of the values."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def plain_row(row: Any, schema: StructType) -> dict[str, Any]:
    """The fields of a dataclass that a schema has, as the dict that Arrow takes for a row: ids of events and
    other dataclasses as structs."""
    return {field.name: _plain(getattr(row, field.name), field.dataType) for field in schema.fields}


def _plain(value: Any, kind: DataType) -> Any:
    if isinstance(kind, ArrayType):
        return [_plain(each, kind.elementType) for each in value]
    if kind == EVENT_ID:
        return None if value is None else {"actor": value[0], "n": value[1]}
    return plain_row(value, kind) if isinstance(kind, StructType) else value


def object_of(kind: type[T], row: Mapping[str, Any]) -> T:
    """The dataclass `kind` from the fields that it has in a row of Spark's: the reverse of `plain_row`. Equal texts are
    one object: tables repeat them in every row."""
    values = {}
    for name, read in _readers(kind):  # type: ignore[arg-type]
        value = row[name]
        values[name] = value if read is None or value is None else read(value)
    return kind(**values)


@cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    return tuple((name, _reader(hint)) for name, hint in _hints(kind).items())


def _values(struct: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(struct.values())


_READERS: dict[Any, Callable[[Any], Any]] = {str: sys.intern, EventId: _values, tuple[str, str]: _values}


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """A function that makes a field of this type from what a row of Spark's holds (never None); None if both are the
    same."""
    if type(None) in get_args(hint):  # of `kind | None`
        return _reader(get_args(hint)[0])
    if isinstance(hint, EnumType):
        return hint
    if get_origin(hint) is tuple and hint not in _READERS:  # of tuple[item, ...]
        read = _reader(get_args(hint)[0])
        return tuple if read is None else lambda value: tuple(map(read, value))
    return partial(object_of, hint) if dataclasses.is_dataclass(hint) else _READERS.get(hint)  # type: ignore[arg-type]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark expects of Python for `schema`."""
    return to_arrow_schema(schema)


def as_declared(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of a schema, in its order and with its types. What may be null stays as it is: that SQL gives no null
    is for tests to say."""
    nullable = schema.toNullable()  # a map or an array from a file may always hold nulls, for all that Spark knows
    return frame.select(*(frame[field.name].cast(field.dataType).alias(field.name) for field in nullable.fields))


def table(spark: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A DataFrame of rows that the driver has."""
    return spark.createDataFrame(arrow_table(rows, schema), schema=schema)


def arrow_table(rows: Iterable[Mapping[str, Any]], schema: StructType) -> pa.Table:
    """Rows that the driver has, as Arrow."""
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(schema))


def dealt(
    spark: SparkSession, rows: pa.Table, schema: StructType, tasks: int, *, neighbours: bool = False
) -> DataFrame:
    """A DataFrame of rows that the driver has, dealt to so many tasks: in turn, or `neighbours` to the same one.
    `repartition` begins each of its input partitions at another task, so of few rows some tasks would get several and
    others none."""
    of = len(rows)
    numbers = pa.array((row * tasks // of if neighbours else row % tasks for row in range(of)), pa.int32())
    numbered = StructType([*schema.fields, column(_TASK, IntegerType())])
    frame = spark.createDataFrame(rows.append_column(arrow_schema(numbered).field(_TASK), numbers), schema=numbered)
    return frame.repartitionById(tasks, _TASK).drop(_TASK)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows of a DataFrame, on the driver; structs as dicts, maps as lists of pairs. For tables of a few rows."""
    return list(each_row(frame))


def each_row(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of `rows_of`, one after the other. Arrow holds all of them; few are dicts at once, which take far more
    memory."""
    for batch in frame.toArrow().to_batches(max_chunksize=_CHUNK_ROWS):
        yield from batch.to_pylist()
