"""What Spark's Python workers do: plain Python called for each row, with what subjects declared in the driver."""

from __future__ import annotations

import gc
import itertools
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from rebalance_lab.analysis.frames import arrow_schema
from rebalance_lab.checks import CHECKS, register
from rebalance_lab.checks.model import Check
from rebalance_lab.history.files import HistoryError
from rebalance_lab.history.intervals import REGISTERED, register_holdings

Row = dict[str, Any]

#: Rows that are in Python at once. They may be whole trials, and in a session of another origin a batch may have 10,000
#: (`spark.sql.execution.arrow.maxRecordsPerBatch`).
ROWS_AT_ONCE = 32

_SETTLING_TASKS = 3
_tasks = itertools.count()


def map_rows(frame: DataFrame, schema: StructType, rows: Callable[[Row], Iterable[Row]]) -> DataFrame:
    """A DataFrame of what `rows`, called in Spark's workers, returns for each row of `frame`. Fields that `schema` does
    not have are left out."""
    driver = Driver.here()

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker(driver)
        yield from mapped(batches, arrow_schema(schema), rows)

    return frame.mapInArrow(work, schema)


def mapped(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: Callable[[Row], Iterable[Row]]
) -> Iterator[pa.RecordBatch]:
    """In a worker: what `rows` returns for each row of these batches, of ROWS_AT_ONCE rows each time."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            given = batch.slice(start, ROWS_AT_ONCE).to_pylist()
            yield pa.RecordBatch.from_pylist([found for row in given for found in rows(row)], schema=schema)


def why_left_out(error: Exception, what: str) -> str:
    """Why a trial is in no table, in one line. `what`: which could not be read or judged, and where."""
    if isinstance(error, HistoryError):
        return str(error)
    if isinstance(error, OSError):
        return f"{what} cannot be read: {error}"
    told = str(error).partition("\n")[0]
    return f"{what} cannot be judged: {type(error).__name__}{': ' if told else ''}{told}"


@dataclass(frozen=True, slots=True)
class Driver:
    """What a worker takes over from the driver: `path`, where modules are imported from; `declared`, pickled: the
    checks that are not in `rebalance_lab.checks`, and who held what by subject, if it was registered."""

    path: tuple[str, ...]
    declared: bytes

    @classmethod
    def here(cls) -> Driver:
        """What this process declared so far. Functions travel by name, except a script's own, which travel whole."""
        checks = [check for check in CHECKS.values() if _is_foreign(check)]
        return cls(tuple(sys.path), cloudpickle.dumps((checks, dict(REGISTERED))))


def _is_foreign(check: Check) -> bool:
    return not check.judge.__module__.startswith("rebalance_lab.checks.")


def settle_worker(driver: Driver) -> None:
    """Declare in this worker what the driver declared, and exempt the modules that are loaded now from garbage
    collection. Call it at the start of a task.

    Spark collects garbage after every task. That would walk all modules each time, which takes longer than reading a
    trial. Libraries load on first use, so it is done in the first few tasks, not only in one; but not in all, because
    then the garbage of tasks would never be freed.
    """
    sys.path += [place for place in driver.path if place not in sys.path]
    checks, holdings = pickle.loads(driver.declared)
    for name in [name for name, check in CHECKS.items() if _is_foreign(check)]:
        del CHECKS[name]  # of an earlier job: Spark uses its workers again
    for check in checks:
        register(check)
    for subject, held in holdings.items():
        register_holdings(subject, held)
    if next(_tasks) < _SETTLING_TASKS:
        gc.freeze()
