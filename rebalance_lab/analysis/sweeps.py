"""Many runs of one function on Spark, as on local processes.

A cluster needs the same Python, with this lab installed, at the same path on every worker, and what the function needs,
such as a store that all workers see at one path.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, BooleanType, StructType

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.session import cores_of
from rebalance_lab.analysis.tables.schemas import column
from rebalance_lab.analysis.workers import Row, map_rows

T = TypeVar("T")
R = TypeVar("R")

#: Runs in a task, and tasks in a wave for each core. The results of a wave come when all of it is done.
RUNS_PER_TASK = 8
TASKS_PER_CORE = 4

_GIVEN = StructType([column("given", BinaryType())])

#: `came`: what the function returned, pickled; if it is not `well`, the error that it raised.
_CAME = StructType([column("well", BooleanType()), column("came", BinaryType())])


def run_on_spark(spark: SparkSession, run: Callable[[T], R], given: Iterable[T]) -> Iterator[R]:
    """The results of `run` for each of `given`, wave by wave, in no order. All that travels is pickled; `run` should be
    a function that workers can import, or a `functools.partial` of one. Raises the first error that `run` raised,
    after its wave has ended."""

    def ran(row: Row) -> list[Row]:
        try:
            return [{"well": True, "came": pickle.dumps(run(pickle.loads(row["given"])))}]
        except Exception as error:
            return [{"well": False, "came": pickle.dumps(error)}]

    tasks = TASKS_PER_CORE * cores_of(spark)
    waiting = iter(given)
    while wave := list(islice(waiting, tasks * RUNS_PER_TASK)):
        rows = [{"given": pickle.dumps(each)} for each in wave]
        given_out = table(spark, rows, _GIVEN).repartition(min(tasks, len(rows)))
        for row in rows_of(map_rows(given_out, _CAME, ran)):
            came = pickle.loads(row["came"])
            if not row["well"]:
                raise came
            yield came
