"""Many runs of one function on Spark, as on local processes.

A cluster needs the same Python, with this lab installed, at the same path on every worker, and what the function needs,
such as a store that all workers see at one path. Where they see none, `run_and_store` has Spark write what was run.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import ArrayType, BinaryType, BooleanType, StructType

from rebalance_lab.analysis.frames import arrow_table, dealt, rows_of
from rebalance_lab.analysis.session import cores_of
from rebalance_lab.analysis.tables.schemas import column
from rebalance_lab.analysis.workers import Row, map_rows

T = TypeVar("T")
R = TypeVar("R")

#: Runs in a task, and tasks in a wave for each core. The results of a wave come when all of it is done. Trials are
#: judged in as many tasks for each core (`summarised`).
RUNS_PER_TASK = 8
TASKS_PER_CORE = 4

_GIVEN = StructType([column("given", BinaryType())])

#: `came`: what the function returned, pickled; if it is not `well`, the error that it raised.
_CAME = StructType([column("well", BooleanType()), column("came", BinaryType())])


def run_on_spark(spark: SparkSession, run: Callable[[T], R], given: Iterable[T]) -> Iterator[R]:
    """The results of `run` for each of `given`, wave by wave, in no order. All that travels is pickled; `run` should be
    a function that workers can import, or a `functools.partial` of one. Raises the first error that `run` raised,
    after its wave has ended."""

    def alone(one: T) -> tuple[R, tuple[Row, ...]]:
        return run(one), ()

    def ran(row: Row) -> list[Row]:
        came, _ = _attempted(alone, row)
        return [came]

    for wave in _waves(spark, given):
        yield from _results(map_rows(wave, _CAME, ran))


def run_and_store(
    spark: SparkSession,
    run: Callable[[T], tuple[R, Sequence[Row]]],
    given: Iterable[T],
    schema: StructType,
    store: Callable[[DataFrame], None],
) -> Iterator[R]:
    """`run_on_spark` for a function that returns rows of `schema` beside its result. `store` is called with those of
    each wave, before its results come; they stay in the workers. Raises also what `store` raises."""
    with_rows = StructType([*_CAME.fields, column("rows", ArrayType(schema, False))])

    def ran(row: Row) -> list[Row]:
        came, rows = _attempted(run, row)
        return [came | {"rows": list(rows)}]

    for wave in _waves(spark, given):
        found = map_rows(wave, with_rows, ran).persist()
        try:
            store(found.select(F.inline("rows")))
            yield from _results(found.select(*_CAME.fieldNames()))
        finally:
            found.unpersist()


def _waves(spark: SparkSession, given: Iterable[T]) -> Iterator[DataFrame]:
    """Each has tasks for the cores that there are when it begins."""
    waiting = iter(given)
    while True:
        tasks = TASKS_PER_CORE * cores_of(spark)
        rows = [{"given": pickle.dumps(each)} for each in islice(waiting, tasks * RUNS_PER_TASK)]
        if not rows:
            return
        yield dealt(spark, arrow_table(rows, _GIVEN), _GIVEN, min(tasks, len(rows)))


def _attempted(run: Callable[[T], tuple[R, Sequence[Row]]], row: Row) -> tuple[Row, Sequence[Row]]:
    """In a worker: a row of _CAME, and the rows that `run` returned."""
    try:
        result, rows = run(pickle.loads(row["given"]))
        return {"well": True, "came": pickle.dumps(result)}, rows
    except Exception as error:
        return {"well": False, "came": pickle.dumps(error)}, ()


def _results(came: DataFrame) -> Iterator[Any]:
    for row in rows_of(came):
        found = pickle.loads(row["came"])
        if not row["well"]:
            raise found
        yield found
