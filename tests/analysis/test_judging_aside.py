"""Queries are built while the trials are judged, in another thread. A signal must not wait for that one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType

from rebalance_lab.analysis.frames import dealt, rows_of, table
from rebalance_lab.analysis.summarised import judged_by
from rebalance_lab.analysis.tables.schemas import column
from rebalance_lab.analysis.workers import Row, map_rows

_JUDGED = StructType([column("trial", StringType()), column("why_left_out", StringType(), null=True)])

_SLOW_S = 120


def test_a_signal_does_not_wait_for_the_trials_that_are_judged(spark: SparkSession) -> None:
    began = time.monotonic()

    def slow(row: Row) -> list[Row]:
        time.sleep(_SLOW_S)
        return [row]

    def judge(some: Sequence[str]) -> DataFrame:
        return map_rows(table(spark, [{"trial": name, "why_left_out": None} for name in some], _JUDGED), _JUDGED, slow)

    def prepare(_: DataFrame) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), judged_by(judge, ["t"], prepare):
        pass
    assert time.monotonic() - began < _SLOW_S / 2


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize(("rows", "tasks"), [(2, 2), (16, 16), (33, 8)])
def test_rows_are_dealt_evenly(spark: SparkSession, rows: int, tasks: int, neighbours: bool) -> None:
    given = pa.table({"id": range(rows)})
    frame = dealt(spark, given, StructType([column("id", LongType())]), tasks, neighbours=neighbours)
    assert sorted(row["id"] for row in rows_of(frame)) == list(range(rows))
    found = frame.selectExpr("spark_partition_id() AS task").groupBy("task").count()
    sizes = [row["count"] for row in rows_of(found)]
    assert (len(sizes), sum(sizes)) == (tasks, rows)
    assert max(sizes) - min(sizes) <= 1
    ids = rows_of(frame.selectExpr("id", "spark_partition_id() AS task"))
    together = [row["task"] for row in sorted(ids, key=lambda row: int(row["id"]))]
    changes = sum(one != other for one, other in itertools.pairwise(together))
    assert changes == (tasks - 1 if neighbours else rows - 1)
