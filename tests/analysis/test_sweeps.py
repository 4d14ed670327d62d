from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from pyspark.sql import SparkSession

from rebalance_lab.analysis import session, sweeps
from rebalance_lab.analysis.sweeps import run_on_spark
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError


def test_a_sweep_has_the_same_trials_as_on_local_processes(spark: SparkSession, tmp_path: Path) -> None:
    plans = [
        api.make_plan("zombie", seed=seed, rules=rules) for seed in range(1, 6) for rules in ("described", "shipped")
    ]
    here, there = tmp_path / "here", tmp_path / "there"
    local = {result.trial.id: result for result in api.sweep(plans, here)}
    found = {result.trial.id: result for result in run_on_spark(spark, partial(api.run, store=there), plans)}
    assert set(found) == set(local) == {plan.trial_id for plan in plans}
    for name, result in found.items():
        assert (result.trial, result.findings) == (local[name].trial, local[name].findings)
        assert result.folder == there / name
        assert (there / name / "events.jsonl").read_bytes() == (here / name / "events.jsonl").read_bytes()


def test_everything_is_run_once_in_waves(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "RUNS_PER_TASK", 2)  # 8 tasks on 2 cores: waves of 16
    came = run_on_spark(spark, math.factorial, range(35))
    assert sorted(came) == sorted(map(math.factorial, range(35)))


def test_waves_grow_as_the_executors_of_a_cluster_come(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(defaultParallelism=1)
    monkeypatch.setitem(session._CONTEXTS, spark, context)
    waves = sweeps._waves(spark, range(200))
    assert next(waves).count() == 1 * 4 * 8
    context.defaultParallelism = 3
    assert next(waves).count() == 3 * 4 * 8
    assert [wave.count() for wave in waves] == [200 - 32 - 96]


def test_what_a_trial_raises_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    plan = msgspec.structs.replace(api.make_plan("crash"), scenario="nowhere")
    with pytest.raises(PlanError, match="there is no scenario nowhere"):
        list(run_on_spark(spark, partial(api.run, store=tmp_path), [plan]))
