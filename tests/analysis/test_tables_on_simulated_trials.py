"""The tables against their oracles on trials that really ran: random histories have no protocol."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from stored_trials import results_of

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.parquet import parquet_of
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.intervals import ownership_intervals, trial_ends
from rebalance_lab.analysis.tables.trial_results import trial_outcomes
from rebalance_lab.history.files import load
from rebalance_lab.history.intervals import ownership_intervals as oracle
from rebalance_lab.trials.api import TrialResult, run
from rebalance_lab.trials.scenario import make_plan

PLANS = (
    make_plan("zombie"),
    make_plan("zombie", control=True, rules="shipped"),
    make_plan("crash", seed=2),
    make_plan("crash", seed=3, plant="persistent-registration"),
    make_plan("leave", seed=4, rules="shipped", settings={"work_period_ms": "20"}),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


@pytest.fixture(scope="module")
def results(store: Path) -> dict[str, TrialResult]:
    found = [run(plan, store) for plan in PLANS]
    return {result.folder.name: result for result in found}


@pytest.fixture(scope="module")
def outcomes(local_spark: LocalSpark, store: Path, results: dict[str, TrialResult]) -> list[dict[str, Any]]:
    assert set(results) == {plan.trial_id for plan in PLANS}
    with results_of(local_spark.session, store) as rows:
        return rows_of(trial_outcomes(rows))


def test_intervals_of_simulated_trials(spark: SparkSession, store: Path, results: dict[str, TrialResult]) -> None:
    expected = Counter(
        (name, each.layer.value, each.member, *each.place, each.begin_us, each.end_us, each.begin, each.end)
        for name, result in results.items()
        for each in oracle(load(result.folder))
    )
    with parquet_of(spark, read_store(store)) as parquet:
        rows = rows_of(ownership_intervals(parquet.events, parquet.histories, trial_ends(parquet.events)))
    found = Counter(
        (
            *(row[name] for name in ("trial", "layer", "member", "group", "topic", "partition", "begin_us", "end_us")),
            (row["begin"]["actor"], row["begin"]["n"]),
            None if row["end"] is None else (row["end"]["actor"], row["end"]["n"]),
        )
        for row in rows
    )
    assert found == expected
    assert {(key[0], key[1]) for key in found} == {
        (name, layer) for name in results for layer in ("belief", "registry", "effect")
    }


def test_outcomes_are_those_of_the_runner(outcomes: list[dict[str, Any]], results: dict[str, TrialResult]) -> None:
    found = {
        (row["trial"], row["check"]): (
            row["outcome"],
            row["why"],
            tuple((each["actor"], each["n"]) for each in row["witness"]),
        )
        for row in outcomes
    }
    assert found == {
        (name, check): (finding.outcome, finding.why, finding.witness)
        for name, result in results.items()
        for check, finding in result.findings.items()
    }
    assert found["zombie-simulated-described-s1", "effect_overlap"][0] == "violated"
    assert found["crash-simulated-described-s3-persistent-registration", "registration"][0] == "violated"


def test_outcomes_carry_what_the_trial_was(outcomes: list[dict[str, Any]], results: dict[str, TrialResult]) -> None:
    for row in outcomes:
        trial = results[row["trial"]].trial
        told = (trial.scenario, trial.world, trial.rules, trial.seed, trial.control, trial.plant, trial.history_sha256)
        names = ("scenario", "world", "rules", "seed", "control", "plant", "history_sha256")
        assert tuple(row[name] for name in names) == told
        assert dict(row["parameters"])["work_period_ms"] == str(trial.parameters["work_period_ms"])
        assert row["bitten"] is (not trial.control)
    assert {row["plant"] for row in outcomes} == {None, "persistent-registration"}
    assert {row["control"] for row in outcomes} == {False, True}
