"""Tier `cluster`: sweeps and claims on a real standalone Spark give what they give on one machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from standalone import REQUIRED, cluster, lab, processes_in, wait_until_none_in
from thorough import only_thorough, usual

from rebalance_lab.analysis.analyse import ANALYSIS_FILE
from rebalance_lab.analysis.session import java_problem
from rebalance_lab.cli.failures import exit_code
from rebalance_lab.trials import api

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

TRIALS = usual(30, 100)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    problem = java_problem()
    if problem is not None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"no cluster: {problem}")
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as url:
        assert len(processes_in(folder)) == 3  # a master and two workers
        yield url
    wait_until_none_in(folder)  # executors neither


def test_trials_have_the_same_hashes_as_on_local_processes(master: str, tmp_path: Path) -> None:
    plans = [api.make_plan("crash", seed=seed) for seed in range(1, TRIALS + 1)]
    local = list(api.sweep(plans, tmp_path / "local"))
    hashes = {result.trial.id: result.trial.history_sha256 for result in local}
    assert len(hashes) == TRIALS
    (log := tmp_path / "log").mkdir()
    logged = ("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={log.as_uri()}")
    spark = ("--master", master, *logged)
    ended = lab("sweep", "crash", "--seeds", TRIALS, *spark, "--store", tmp_path / "spark", "--json")
    assert list(log.iterdir()), "Spark did not get the settings of --conf"
    assert ended.returncode == exit_code([result.status for result in local]), ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {line["trial"]: line["history_sha256"] for line in lines} == hashes
    assert {line["trial"]: line["status"] for line in lines} == {each.trial.id: each.status for each in local}
    stored = {path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "spark").glob("*/trial.json")}
    assert {name: trial["history_sha256"] for name, trial in stored.items()} == hashes


@only_thorough
def test_surprises_are_named_with_their_seeds(master: str, tmp_path: Path) -> None:
    bug = ("--set", "plant=persistent-registration")
    ended = lab("sweep", "crash", *bug, "--seeds", 3, "--master", master, "--store", tmp_path)
    assert ended.returncode == 1, ended.stderr
    named = [line for line in ended.stdout.splitlines() if line.startswith("surprise: ")]
    assert [line.split(",")[0] for line in named] == [f"surprise: seed {seed}" for seed in (1, 2, 3)]
    assert all("rebalance-lab replay " in line for line in named)


def test_every_table_is_the_same_as_on_this_machine(master: str, tmp_path: Path) -> None:
    """The workers judge: what they keep lies beside the trials. What the store keeps holds every table, sorted."""
    for seed in (1, 2, 3):
        api.run(api.make_plan("zombie", seed=seed), tmp_path)
    claims = ("claims", "--json", "--store", os.path.relpath(tmp_path))
    on_cluster = lab(*claims, "--master", master)
    assert len(list(tmp_path.glob("*/.judgement"))) == 3, on_cluster.stderr
    tables = (tmp_path / ANALYSIS_FILE).read_bytes()
    here = lab(*claims, "--cores", 1, "--rejudge")
    assert (tmp_path / ANALYSIS_FILE).read_bytes() == tables
    filled = set(re.findall(rb'"(\w+)":\[\{', tables))
    assert {b"verdicts", b"outcomes", b"measures", b"episodes", b"summaries"} <= filled
    assert (on_cluster.stdout, on_cluster.returncode) == (here.stdout, here.returncode)
    assert json.loads(here.stdout)["Z10"]["readings"]["described"]["simulated"] == 3
