"""Stores that do not show what was claimed: too few trials, a counter-example, a changed file."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from pyspark.sql import SparkSession

from rebalance_lab.analysis.analyse import analyse
from rebalance_lab.analysis.results import Analysis, Verdict
from rebalance_lab.history.files import TRIAL_FILE, read_trial, seal
from rebalance_lab.trials.api import run
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import GaveUp
from zkconsumer.rebalance import Rebalancer

ZOMBIE = "zombie-simulated-described-s1"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A zombie and a crash, simulated, with their controls, and a trial that was cut off."""
    for control in (False, True):
        run(make_plan("zombie", control=control), tmp_path)
        run(make_plan("crash", control=control), tmp_path)
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / ZOMBIE, cut)
    (cut / TRIAL_FILE).unlink()
    return tmp_path


def verdict_of(analysis: Analysis, claim: str) -> Verdict:
    (found,) = (each for each in analysis.verdicts if (each.claim, each.reading) == (claim, "described"))
    return found


def test_one_world_is_not_enough(spark: SparkSession, store: Path) -> None:
    analysis = analyse(store, spark=spark, intervals_for=())

    assert len(analysis.trials) == 4
    assert {outcome.trial for outcome in analysis.outcomes} == {trial.id for trial in analysis.trials}
    assert analysis.cut_off == ("cut",)
    z10 = verdict_of(analysis, "Z10")
    assert (z10.verdict, z10.status, z10.live, z10.simulated) == ("unknown", "unknown", 0, 1)
    assert z10.why == "needs one live trial; needs one clean live control (the same with --control)"
    z1 = verdict_of(analysis, "Z1")
    assert z1.why.startswith(
        "needs 5 live trials; needs one clean live control (the same with --control); needs 199 more simulated trials"
    )


def test_a_trial_in_which_the_runner_gave_up_is_undecided_or_denies(spark: SparkSession, tmp_path: Path) -> None:
    """The third member never rebalances. Those as shipped had broken the order of Z6 before."""
    synced = Rebalancer.synced

    async def unless_third(self: Rebalancer, by: str) -> None:
        if "host-m3" not in self._settings.consumer_id:
            await synced(self, by)

    with patch.object(Rebalancer, "synced", unless_third):
        for rules in ("described", "shipped"):
            with pytest.raises(GaveUp):
                run(make_plan("walkthrough", rules=rules), tmp_path)
    analysis = analyse(tmp_path, spark=spark, intervals_for=())
    assert (len(analysis.trials), analysis.cut_off) == (2, ())
    found = {each.reading: each.frequencies[1] for each in analysis.verdicts if each.claim == "Z6"}
    assert (found["described"].decided, found["described"].undecided) == (0, 1)
    assert (found["shipped"].shown, found["shipped"].decided) == (0, 1)


def test_a_counter_example_is_a_surprise_that_can_be_replayed(spark: SparkSession, store: Path) -> None:
    """The planted bug itself never counts; the same history from an earnest trial does."""
    planted = run(make_plan("crash", seed=2, plant="persistent-registration"), store).folder
    earnest = store / "crash-in-earnest"
    shutil.copytree(planted, earnest)
    seal(earnest, msgspec.structs.replace(read_trial(earnest), id=earnest.name, plant=None))
    analysis = analyse(store, spark=spark, intervals_for=())
    found = {each.trial: each.outcome for each in analysis.outcomes if each.check == "registration"}
    assert found[planted.name] == found[earnest.name] == "violated"
    z1 = verdict_of(analysis, "Z1")
    assert (z1.verdict, z1.status, z1.simulated) == ("refuted", "surprise", 2)
    assert z1.witness == earnest.name
    assert z1.replay == f"rebalance-lab replay {earnest}"


def test_a_zombie_that_cannot_be_counted_proves_nothing(spark: SparkSession, store: Path) -> None:
    events = store / ZOMBIE / "events.jsonl"
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-1]))
    analysis = analyse(store, spark=spark)
    (out,) = analysis.left_out
    assert (out.trial, f"{ZOMBIE} was changed after it was sealed" in out.why) == (ZOMBIE, True)
    assert verdict_of(analysis, "Z10").simulated == 0
    assert verdict_of(analysis, "Z1").simulated == 1
