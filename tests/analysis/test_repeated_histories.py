"""What happened once is one trial, however often it is stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from stored_trials import results_of

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.ledger import Claim, Expected, Ledger, Minimum, Quantifier, Reading, Run
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.herd_costs import herd_costs
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_outcomes import trial_outcomes
from rebalance_lab.history.files import read_trial, seal
from rebalance_lab.trials.api import run
from rebalance_lab.trials.scenario import make_plan

NEEDED = 3


def universal(scenario: str, check: str) -> Claim:
    return Claim(
        statement="it is always so",
        quantifier=Quantifier.ALWAYS,
        source="test",
        readings=(Reading("all", Expected.REPRODUCED, "because"),),
        run=Run(scenario=scenario, checks=(check,), minimum=Minimum(live=0, simulated=NEEDED)),
    )


def verdict(spark: SparkSession, store: Path, claim: Claim) -> dict[str, object]:
    """The claim's only row of VERDICTS, from the trials of a store."""
    readings = readings_table(spark, Ledger({"X1": claim}))
    with results_of(spark, store) as results:
        (row,) = rows_of(claim_verdicts(trial_outcomes(results), readings, herd_costs(results)))
    return row


def crash(store: Path, **plan: object) -> Path:
    return run(make_plan("crash", **plan), store).folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    crash(tmp_path, control=True)
    crash(tmp_path, seed=1)
    crash(tmp_path, seed=2)
    return tmp_path


def test_a_copied_folder_is_no_further_trial(spark: SparkSession, store: Path) -> None:
    folder = crash(store, seed=2)
    for n in range(NEEDED):
        shutil.copytree(folder, store / f"copy-{n}")
    row = verdict(spark, store, universal("crash", "registration"))
    assert (row["verdict"], row["simulated"]) == ("unknown", 2)
    assert row["why"] == (
        f"needs one more simulated trial (so far 2 of 2 show it) ({NEEDED} not counted: another's history again)"
    )

    crash(store, seed=3)
    row = verdict(spark, store, universal("crash", "registration"))
    assert (row["verdict"], row["simulated"]) == ("reproduced", NEEDED)
    assert "clean in all 0 live and 3 simulated trials" in row["why"]


def test_a_setting_that_changes_nothing_makes_no_further_trial(spark: SparkSession, store: Path) -> None:
    plain = crash(store, seed=2)
    patient = crash(store, seed=2, settings={"rest_timeout_ms": "29000"})
    assert (plain / "events.jsonl").read_bytes() == (patient / "events.jsonl").read_bytes()
    eager = crash(store, seed=2, settings={"rebalance_backoff_ms": "400"})
    assert (plain / "events.jsonl").read_bytes() != (eager / "events.jsonl").read_bytes()
    # Seeds 1 and 2, and the eager one.
    assert verdict(spark, store, universal("crash", "registration"))["simulated"] == NEEDED


def test_a_seal_that_is_missing_does_not_hide_a_copy(spark: SparkSession, store: Path) -> None:
    """Events are compared, not what `trial.json` says of them: that may be empty."""
    copy = store / "copy"
    shutil.copytree(crash(store, seed=2), copy)
    seal(copy, msgspec.structs.replace(read_trial(copy), seed=77, history_sha256=""))
    assert verdict(spark, store, universal("crash", "registration"))["simulated"] == 2


def test_a_counter_example_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    crash(tmp_path, control=True)
    shutil.copytree(run(make_plan("zombie"), tmp_path).folder, tmp_path / "a-copy")
    run(make_plan("zombie", control=True), tmp_path)
    row = verdict(spark, tmp_path, universal("zombie", "effect_overlap"))
    assert (row["verdict"], row["simulated"]) == ("refuted", 1)
    assert row["witness"] == "a-copy"  # of one seed, the first by name
    assert "violated in 0 of 0 live trials and 1 of 1 simulated trials" in str(row["why"])


def test_the_same_history_in_two_worlds_is_two_trials(spark: SparkSession, tmp_path: Path) -> None:
    """Worlds are counted apart: one never fills in for the other, nor takes from it."""
    for control in (False, True):
        folder = crash(tmp_path, control=control)
        live = tmp_path / f"live-{control}"
        shutil.copytree(folder, live)
        seal(live, msgspec.structs.replace(read_trial(live), world="processes"))
    row = verdict(spark, tmp_path, universal("crash", "registration"))
    assert (row["live"], row["simulated"]) == (1, 1)
