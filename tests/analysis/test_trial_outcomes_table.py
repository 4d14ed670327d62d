from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from stored_trials import random_history, results_of, store_history, trial

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.trial_outcomes import OUTCOMES, trial_outcomes
from rebalance_lab.history.checks import judge
from rebalance_lab.history.checks.faults import faults
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History


def test_the_table_says_what_the_checks_say(spark: SparkSession, tmp_path: Path) -> None:
    histories = [random_history(f"t{seed:03}", seed) for seed in range(120)]
    for history in histories:
        store_history(tmp_path, history)
    expected = {}
    for history in histories:
        bitten = bool(faults(history)) and all(fault.why_not_bitten is None for fault in faults(history))
        for check, finding in judge(history).items():
            numbers = (finding.measures.get("longest_us", 0), finding.measures.get("count", 0))
            told = (finding.outcome, finding.why, finding.witness, *numbers, len(faults(history)), bitten)
            expected[history.trial.id, check] = told

    with results_of(spark, tmp_path) as results:
        table = trial_outcomes(results)
        assert table.schema == OUTCOMES
        rows = rows_of(table)
    found = {
        (row["trial"], row["check"]): (
            row["outcome"],
            row["why"],
            tuple((event["actor"], event["n"]) for event in row["witness"]),
            row["longest_us"],
            row["count"],
            row["faults"],
            row["bitten"],
        )
        for row in rows
    }
    assert found == expected
    assert len(rows) == len(expected) > len(histories)
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
    with (
        results_of(spark, tmp_path) as results,
        pytest.raises(PySparkException, match="HistoryError: trial odd: event"),
    ):
        rows_of(trial_outcomes(results))
