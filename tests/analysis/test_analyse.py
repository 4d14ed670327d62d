"""End to end: real simulated trials, stored, and what the analysis makes of the store."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from stored_trials import random_history, store_history

from rebalance_lab.analysis.analyse import analyse
from rebalance_lab.analysis.claims import claim_status, claims_json
from rebalance_lab.analysis.ledger import Status, read_ledger
from rebalance_lab.analysis.results import Analysis, Interval, Verdict
from rebalance_lab.checks import judge
from rebalance_lab.history import intervals as intervals_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import TRIAL_FILE, History, HistoryError, load, merge, trial_folders
from rebalance_lab.history.intervals import ownership_intervals
from rebalance_lab.trials import api

SEEDS = (1, 2, 3)


def as_live(folder: Path) -> Path:
    """The same history, as if processes had made it: with what proves that it ran live."""
    history = load(folder)
    ends = {event.actor: event for event in history.events}
    members = {event.actor for event in history.events if event.kind is Kind.MEMBER_STARTED}
    hosts = [Event(m, ends[m].n + 1, ends[m].at_us, Layer.OP, Kind.PROCESS_STARTED) for m in sorted(members)]
    trial = msgspec.structs.replace(
        history.trial,
        id=f"live-{folder.name}",
        world="processes",
        boot_ids=("one",),
        started_wall_ms=1,
        history_sha256="",
        versions={"zookeeper": "3.9.5"},
    )
    return store_history(folder.parent, History(trial, merge([*history.events, *hosts])))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three zombies, one of them with a planted bug beside it, a control, and the same as live."""
    path = tmp_path_factory.mktemp("trials")
    for seed in SEEDS:
        api.run(api.make_plan("zombie", world="simulated", seed=seed), path)
    api.run(api.make_plan("zombie", world="simulated", seed=1, plant="work-through-rebalance"), path)
    as_live(api.run(api.make_plan("zombie", world="simulated", seed=1), path).folder)
    as_live(api.run(api.make_plan("zombie", world="simulated", seed=1, control=True), path).folder)
    return path


@pytest.fixture(scope="module")
def analysis(store: Path, local_spark: Any) -> Analysis:
    return analyse(store, spark=local_spark.session)


def verdict(analysis: Analysis, claim: str) -> Verdict:
    """Of our own members, as the articles describe them."""
    (found,) = [each for each in analysis.verdicts if (each.claim, each.reading) == (claim, "described")]
    return found


def test_every_trial_has_an_outcome_of_every_check(analysis: Analysis, store: Path) -> None:
    names = [folder.name for folder in trial_folders(store)]
    assert [trial.id for trial in analysis.trials] == names
    assert [(each.trial, each.check) for each in analysis.outcomes] == [
        (name, check) for name in names for check in judge(load(store / name))
    ]
    worked = [each for each in analysis.outcomes if each.check == "effect_overlap" and not each.control]
    assert {each.outcome for each in worked} == {"violated"}
    assert all(each.longest_us > 0 and each.count > 0 and each.witness for each in worked)


def test_the_zombie_is_reproduced(analysis: Analysis, store: Path) -> None:
    found = verdict(analysis, "Z10")
    assert (found.verdict, found.status) == ("reproduced", "as expected")
    assert (found.live, found.simulated) == (1, len(SEEDS))  # neither the control nor the planted bug
    witness = [trial for trial in analysis.trials if trial.id == found.witness]
    assert [(trial.world, trial.seed, trial.plant) for trial in witness] == [("simulated", 1, None)]
    assert found.replay == f"rebalance-lab replay {store / found.witness}"


def test_every_reading_of_the_ledger_has_a_verdict_in_its_order(analysis: Analysis) -> None:
    ledger = [(claim, reading.name) for claim, _, reading in read_ledger().readings()]
    assert [(each.claim, each.reading) for each in analysis.verdicts] == ledger
    crash = verdict(analysis, "Z1")
    assert (crash.verdict, crash.why) == ("not run", "no trial of crash with rules described in this store")
    assert all(each.why for each in analysis.verdicts)


def as_spans(intervals: Sequence[Interval | intervals_of.Interval]) -> set[tuple[object, ...]]:
    return {(each.layer, each.topic, each.partition, each.member, each.begin_us, each.end_us) for each in intervals}


def test_the_intervals_are_those_of_the_deciding_trials_and_their_controls(analysis: Analysis, store: Path) -> None:
    shown = {each.trial for each in analysis.intervals}
    known = {trial.id: trial for trial in analysis.trials}
    assert {(known[name].world, known[name].control) for name in shown} == {
        (world, control) for world in ("simulated", "processes") for control in (False, True)
    }
    assert len(shown) == 4
    for name in shown:
        expected = as_spans(ownership_intervals(load(store / name)))
        assert as_spans([each for each in analysis.intervals if each.trial == name]) == expected


def test_intervals_can_be_chosen_from_what_was_found(store: Path, spark: SparkSession) -> None:
    def last(seen: Analysis) -> list[str]:
        assert seen.verdicts and seen.outcomes and not seen.intervals
        return [seen.trials[-1].id]

    found = analyse(store, intervals_for=last, spark=spark)
    assert {each.trial for each in found.intervals} == {trial_folders(store)[-1].name}


def test_intervals_of_a_trial_that_is_not_there_are_an_error(tmp_path: Path, spark: SparkSession) -> None:
    with pytest.raises(HistoryError, match="holds no trial 'x'"):
        analyse(tmp_path, intervals_for=["x"], spark=spark)


def test_a_store_without_whole_trials_leaves_all_claims_not_run(tmp_path: Path, analysis: Analysis) -> None:
    """Said without Spark, in the words that Spark has for a store without the trials of a claim."""
    (store_history(tmp_path, random_history("cut", 4)) / TRIAL_FILE).unlink()
    found = analyse(tmp_path)
    assert (found.outcomes, found.intervals, found.trials) == ((), (), ())
    assert found.cut_off == ("cut",)
    assert {each.status for each in found.verdicts} == {"not run"}
    others = [each for each in analysis.verdicts if each.status == "not run"]
    assert [each for each in found.verdicts if (each.claim, each.reading) != ("Z10", "described")] == others


def test_claims_for_other_programs(analysis: Analysis) -> None:
    claims = msgspec.json.decode(msgspec.json.encode(claims_json(analysis)))
    assert list(claims) == list(read_ledger().claims)
    z10 = verdict(analysis, "Z10")
    assert claims["Z10"]["status"] == "as expected"
    reading = claims["Z10"]["readings"]["described"]
    assert reading["trials"] == z10.live + z10.simulated
    assert (reading["expected"], reading["verdict"]) == ("reproduced", "reproduced")
    assert (reading["witness"], reading["replay"], reading["why"]) == (z10.witness, z10.replay, z10.why)
    simulated = next(each for each in reading["frequencies"] if each["world"] == "simulated")
    assert (simulated["shown"], simulated["decided"]) == (z10.simulated, z10.simulated)
    assert 0 < simulated["low"] < simulated["high"] == 1
    assert claims["Z12b"]["status"] == "not run"
    assert list(claims["Z14"]["readings"]) == ["described", "shipped"]


@pytest.mark.parametrize(
    ("readings", "status"),
    [
        (["as expected", "surprise", "unknown"], "surprise"),
        (["as expected", "unknown", "not run"], "unknown"),
        (["does not apply", "as expected", "not run"], "as expected"),
        (["does not apply", "not run"], "does not apply"),
        (["not run", "not run"], "not run"),
    ],
)
def test_a_claims_status_is_that_of_its_gravest_reading(analysis: Analysis, readings: list[str], status: str) -> None:
    one = verdict(analysis, "Z10")
    assert claim_status(dataclasses.replace(one, status=Status(each)) for each in readings) == status
