"""What happened once is one trial, however often it is stored."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from stored_trials import results_of

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.ledger import Claim, Expected, Ledger, Minimum, Quantifier, Reading, Run
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_results import herd_costs
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


def crash(store: Path, **plan: Any) -> Path:
    return run(make_plan("crash", **plan), store).folder


def case(store: Path, name: str, folder: Path, **changes: Any) -> None:
    """Copy a trial into a case: a scenario of its own, judged with all the others at once."""
    copy = store / f"{name}-{len(list(store.iterdir()))}-{folder.name}"
    shutil.copytree(folder, copy)
    seal(copy, replace(read_trial(copy), scenario=name, **changes))


@pytest.fixture(scope="module")
def told(local_spark: LocalSpark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    trials, store = tmp_path_factory.mktemp("trials"), tmp_path_factory.mktemp("cases")
    control, one, two, three = crash(trials, control=True), *(crash(trials, seed=seed) for seed in (1, 2, 3))
    copies = {"copies": [control, one, two, two, two, two], "and one more": [control, one, two, two, three]}
    for name, folders in copies.items():
        for folder in folders:
            case(store, name, folder)

    settings = ({"group": "g2"}, {"brokers": "2"}, {"latency_min_us": "201"}, {"members": "4"})
    others = [crash(trials, seed=2, settings=each) for each in settings]
    assert len({(folder / "events.jsonl").read_bytes() for folder in (two, *others)}) == 1 + len(others)
    for folder in (control, one, two, *others):
        case(store, "settings", folder)

    for folder in (control, one, two):
        case(store, "no seal", folder)
    case(store, "no seal", two, seed=77, history_sha256="")

    zombie = run(make_plan("zombie"), trials).folder
    for folder in (control, zombie, zombie):
        case(store, "counter-example", folder)

    for world in ("simulated", "processes"):
        for folder in (control, one):
            case(store, "two worlds", folder, world=world)
    return verdicts(local_spark.session, store)


def verdicts(spark: SparkSession, store: Path) -> dict[str, dict[str, Any]]:
    names = {trial.scenario for trial in read_store(store).trials}
    check = {"counter-example": "effect_overlap"}
    ledger = Ledger({name: universal(name, check.get(name, "registration")) for name in sorted(names)})
    with results_of(spark, store) as results:
        frame = claim_verdicts(results, readings_table(spark, ledger), herd_costs(results))
        return {row["claim"]: row for row in rows_of(frame)}


Told = dict[str, dict[str, Any]]


def test_a_copied_folder_is_no_further_trial(told: Told) -> None:
    row = told["copies"]
    assert (row["verdict"], row["simulated"]) == ("unknown", 2)
    assert row["why"] == (
        "needs one more simulated trial (so far 2 of 2 show it) "
        f"({NEEDED} not counted: same seed or history as another trial)"
    )
    row = told["and one more"]
    assert (row["verdict"], row["simulated"]) == ("reproduced", NEEDED)
    assert "clean in 3 of 3 simulated trials" in row["why"]


def test_another_setting_makes_no_further_trial_of_a_seed(told: Told) -> None:
    row = told["settings"]
    assert (row["verdict"], row["simulated"]) == ("unknown", 2)
    assert "(4 not counted: same seed or history as another trial)" in str(row["why"])


def test_a_seal_that_is_missing_does_not_hide_a_copy(told: Told) -> None:
    """Events are compared, not what `trial.json` says of them: that may be empty."""
    assert told["no seal"]["simulated"] == 2


def test_a_counter_example_counts_once(told: Told) -> None:
    row = told["counter-example"]
    assert (row["verdict"], row["simulated"]) == ("refuted", 1)
    assert row["witness"] == "counter-example-23-zombie-simulated-described-s1"  # of one seed, the first by name
    assert "violated in 1 of 1 simulated trials" in str(row["why"])


def test_a_simulated_trial_that_calls_itself_live_is_no_live_one(told: Told) -> None:
    """It has no boot id, and no process started; nor does it take anything from the simulated one."""
    assert (told["two worlds"]["live"], told["two worlds"]["simulated"]) == (0, 1)
    assert "needs" in str(told["two worlds"]["why"])
