"""What each table costs Spark: exchanges (shuffles) and jobs have a cap, so that a needless one is noticed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertSchemaEqual
from stored_trials import RandomTrials

from rebalance_lab.analysis import published
from rebalance_lab.analysis.frames import as_declared
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.published import TABLES

ANALYSIS = Path(published.__file__).parent

#: The most exchanges and jobs of each table. Tables that are columns of judged trials need no exchange. `intervals` is
#: four groups of steps: three layers, and the ends of trials. `verdicts` puts trials together by reading, with the
#: costs of a trend once more, and fits by reading. A broadcast is a job and no exchange.
MOST = {
    "trials": (0, 1),
    "findings": (0, 1),
    "events": (0, 1),
    "intervals": (4, 4),
    "leaderships": (2, 2),
    "in_sync": (2, 2),
    "placements": (1, 1),
    "operations": (1, 1),
    "episodes": (0, 1),
    "herd_costs": (0, 1),
    "measures": (0, 1),
    "fits": (1, 1),
    "summaries": (5, 5),
    "verdicts": (3, 7),
}


@pytest.fixture(scope="module")
def frames(random_trials: RandomTrials) -> dict[str, DataFrame]:
    random_trials.results.count()  # judged, once
    return published._all_tables(published.StoredHere(random_trials.parquet), random_trials.results, read_ledger())


def exchanges(frame: DataFrame) -> int:
    """Of the physical plan, without those of what is persisted."""
    count, persisted = 0, None
    for line in frame._jdf.queryExecution().executedPlan().toString().splitlines():
        depth = len(line) - len(line.lstrip(" :+-"))
        if persisted is not None and depth > persisted:
            continue
        persisted = depth if "InMemoryRelation" in line else None
        count += bool(re.search(r"[^a-zA-Z]Exchange (hash|range|single|round)", line, re.IGNORECASE))
    return count


@pytest.mark.parametrize("name", TABLES)
def test_a_table_costs_no_more_than_it_must(spark: SparkSession, frames: dict[str, DataFrame], name: str) -> None:
    declared = TABLES[name].schema
    here = [field for field in declared.fields if field.name in frames[name].columns]
    assertSchemaEqual(as_declared(frames[name], type(declared)(here)).schema, type(declared)(here), ignoreNullable=True)
    context: Any = spark.sparkContext
    context.setJobGroup(name, name)
    try:
        frames[name].toArrow()
        jobs = len(context.statusTracker().getJobIdsForGroup(name))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert exchanges(frames[name]) <= MOST[name][0]
    assert 0 < jobs <= MOST[name][1]


def test_a_shuffle_too_many_is_noticed(frames: dict[str, DataFrame]) -> None:
    more = frames["episodes"].groupBy("trial").count()
    assert exchanges(more) > MOST["episodes"][0]


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("sparkContext", "SparkContext", "_gateway"), {"session.py"}),
        (("_jvm", "_jsc", "_jsparkSession", ".rdd"), {"session.py", "file_systems.py"}),
    ],
)
def test_only_few_modules_know_the_context_and_the_jvm(words: tuple[str, ...], where: set[str]) -> None:
    """Elsewhere a session is enough, so that it may be Spark Connect's (docs/tables.md)."""
    texts = {path.name: path.read_text() for path in ANALYSIS.rglob("*.py")}
    assert {name for name, text in texts.items() if any(word in text for word in words)} == where
