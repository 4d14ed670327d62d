"""Trials counted by kind, and samples of them: Spark's tables beside plain Python, and the page of a sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.testing import assertSchemaEqual
from stored_trials import RandomTrials, trial

from rebalance_lab.analysis.counts import kind_counts_of, outcome_counts_of
from rebalance_lab.analysis.frames import as_declared, object_of, rows_of
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.results import Analysis, KindCount, OutcomeCount, TrialOutcome
from rebalance_lab.analysis.summarised import collected
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_counts import (
    KIND_COUNTS,
    OUTCOME_COUNTS,
    first_trials,
    kind_counts,
    outcome_counts,
)
from rebalance_lab.analysis.tables.trial_results import trial_outcomes
from rebalance_lab.report.findings import surprises_of, tally


@pytest.fixture(scope="module")
def results(random_trials: RandomTrials) -> DataFrame:
    """Random trials of eight kinds, of which most have one seed twice, and every seventh is of no check."""
    number = F.substring("trial", 2, 3).cast("long")
    members = F.create_map(F.lit("members"), (number % 2).cast("string"))
    return (
        random_trials.results.withColumn("rules", F.concat(F.lit("r"), (number % 3 % 2).cast("string")))
        .withColumn("control", number % 5 == 0)
        .withColumn("seed", F.floor(number / 2))
        .withColumn("parameters", F.map_concat(F.map_filter("parameters", lambda name, _: name != "members"), members))
        .withColumn("findings", F.when(number % 7 != 0, F.col("findings")).otherwise(F.array().cast("array<void>")))
        .persist()
    )


@pytest.fixture(scope="module")
def analysis(results: DataFrame) -> Analysis:
    """The rows of all trials."""
    outcomes = [object_of(TrialOutcome, row) for row in rows_of(trial_outcomes(results))]
    trials = [
        trial(row["trial"], **{name: row[name] for name in ("scenario", "world", "rules", "seed", "control")},
              parameters=dict(row["parameters"]), plant=row["plant"])
        for row in rows_of(results.drop("findings", "episodes", "herd_costs"))
    ]  # fmt: skip
    ordered = sorted(outcomes, key=lambda each: (each.trial, each.check))
    return Analysis(verdicts=(), outcomes=tuple(ordered), intervals=(), trials=tuple(trials))


def counted(rows: Any) -> Counter[object]:
    return Counter(rows)


def test_kinds_are_those_of_plain_python(results: DataFrame, analysis: Analysis) -> None:
    found = kind_counts(results)
    assertSchemaEqual(as_declared(found, KIND_COUNTS).schema, KIND_COUNTS, ignoreNullable=True)
    kinds = [object_of(KindCount, row) for row in rows_of(found)]
    assert counted(kinds) == counted(kind_counts_of(analysis))
    assert len(kinds) >= 8
    assert any(kind.judged < kind.trials for kind in kinds)


def test_outcomes_are_those_of_plain_python(results: DataFrame, analysis: Analysis) -> None:
    found = outcome_counts(results)
    assertSchemaEqual(as_declared(found, OUTCOME_COUNTS).schema, OUTCOME_COUNTS, ignoreNullable=True)
    counts = [object_of(OutcomeCount, row) for row in rows_of(found)]
    assert counted(counts) == counted(outcome_counts_of(analysis))
    assert any(count.trials > 1 for count in counts)


def test_a_sample_has_as_many_of_each_kind(results: DataFrame, analysis: Analysis) -> None:
    kinds: dict[object, list[tuple[int, str]]] = {}
    for each in analysis.trials:
        kind = (
            each.scenario,
            each.world,
            each.variant,
            each.control,
            each.plant,
            repr(sorted(each.parameters.items())),
        )
        kinds.setdefault(kind, []).append((each.seed, each.id))
    most = 2 * len(kinds)
    chosen = {row["trial"] for row in rows_of(first_trials(results, most))}
    assert len(chosen) == most < len(analysis.trials)
    for alike in kinds.values():
        of_kind = [name for _, name in sorted(alike) if name in chosen]
        assert len(of_kind) >= min(2, len(alike))
        assert of_kind == [name for _, name in sorted(alike)][: len(of_kind)]


def test_a_page_of_a_sample_counts_all(spark: SparkSession, results: DataFrame, analysis: Analysis) -> None:
    found, _ = collected(results, readings_table(spark, read_ledger()), most=10)
    shown = {each.trial for each in found.measures}
    assert len(shown) < len(analysis.trials) / 2
    few = replace(found, trials=tuple(each for each in analysis.trials if each.id in shown))
    assert few.sampled
    assert (few.size, few.simulated) == (analysis.size, analysis.simulated) == (len(analysis.trials),) * 2
    assert tally(few) == tally(analysis)
    assert surprises_of(few, str) == surprises_of(analysis, str)
