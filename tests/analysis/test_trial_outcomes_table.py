from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from stored_trials import RandomTrials, judged_of, results_of, store_history, trial

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.trial_results import (
    JUDGED,
    OUTCOMES,
    trial_outcomes,
    trial_results,
    trials_left_out,
)
from rebalance_lab.checks import judge
from rebalance_lab.checks.faults import faults
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, digest


def test_the_table_says_what_the_checks_say(random_trials: RandomTrials) -> None:
    expected = {}
    for name, history in random_trials.histories.items():
        bitten = bool(faults(history)) and all(fault.why_not_bitten is None for fault in faults(history))
        of_trial = (history.trial.seed, digest(history.events), len(faults(history)), bitten)
        for check, finding in judge(history).items():
            numbers = (finding.measures.get("longest_us", 0), finding.measures.get("count", 0))
            expected[name, check] = (*of_trial, finding.outcome, finding.why, finding.witness, *numbers)

    table = trial_outcomes(random_trials.results)
    assert table.schema == OUTCOMES
    rows = rows_of(table)
    before, after = ("seed", "history_sha256", "faults", "bitten", "outcome", "why"), ("longest_us", "count")
    found = {
        (row["trial"], row["check"]): (
            *(row[name] for name in before),
            tuple((event["actor"], event["n"]) for event in row["witness"]),
            *(row[name] for name in after),
        )
        for row in rows
    }
    assert found == expected
    assert len(rows) == len(expected)
    assert {row["outcome"] for row in rows} >= {"violated", "unknown"}
    assert {row["bitten"] for row in rows} == {True, False}


def test_a_trial_without_events_is_judged_too(spark: SparkSession, tmp_path: Path) -> None:
    empty = History(trial("empty"), ())
    store_history(tmp_path, empty)
    with results_of(spark, tmp_path) as results:
        rows = rows_of(trial_outcomes(results))
    assert {row["check"]: row["outcome"] for row in rows} == dict.fromkeys(judge(empty), "unknown")


def test_events_that_no_recorder_writes_name_their_trial(spark: SparkSession, tmp_path: Path) -> None:
    nameless = Event(actor="m1", n=0, at_us=1, layer=Layer.BELIEF, kind=Kind.OWNED, member="g_m1")
    store_history(tmp_path, History(trial("odd"), (nameless,)))
    store_history(tmp_path, History(trial("even"), ()))
    with judged_of(spark, tmp_path) as judged:
        assert judged.schema == JUDGED
        (out,) = rows_of(trials_left_out(judged))
        assert (out["trial"], out["why"].startswith("trial odd: event")) == ("odd", True)
        assert {row["trial"] for row in rows_of(trial_outcomes(trial_results(judged)))} == {"even"}
