from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from stored_trials import random_history, store_history, trial

from rebalance_lab.analysis.datasource import read_histories
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.trial_outcomes import OUTCOMES, trial_outcomes
from rebalance_lab.history.checks import CHECKS, judge
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
            expected[history.trial.id, check] = (finding.outcome, finding.why, finding.witness, *numbers, bitten)

    table = trial_outcomes(read_histories(spark, tmp_path).coalesce(4))
    assert table.schema == OUTCOMES
    rows = rows_of(table)
    found = {
        (row["trial"], row["check"]): (
            row["outcome"],
            row["why"],
            tuple((event["actor"], event["n"]) for event in row["witness"]),
            row["longest_us"],
            row["count"],
            row["bitten"],
        )
        for row in rows
    }
    assert found == expected
    assert len(rows) == len(histories) * len(CHECKS)
    assert {row["outcome"] for row in rows} >= {"violated", "unknown"}
    assert {row["bitten"] for row in rows} == {True, False}


def test_a_trial_without_events_is_judged_too(spark: SparkSession, tmp_path: Path) -> None:
    store_history(tmp_path, History(trial("empty"), ()))
    rows = rows_of(trial_outcomes(read_histories(spark, tmp_path)))
    assert {row["check"]: row["outcome"] for row in rows} == dict.fromkeys(CHECKS, "unknown")


def test_events_that_no_recorder_writes_name_their_trial(spark: SparkSession, tmp_path: Path) -> None:
    nameless = Event(actor="m1", n=0, at_us=1, layer=Layer.BELIEF, kind=Kind.OWNED, member="g_m1")
    store_history(tmp_path, History(trial("odd"), (nameless,)))
    with pytest.raises(PySparkException, match="HistoryError: trial odd: event"):
        rows_of(trial_outcomes(read_histories(spark, tmp_path)))
