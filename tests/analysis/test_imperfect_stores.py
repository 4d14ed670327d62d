"""Stores with trials that cannot be read or judged: these are named and left out, and the others are judged."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from stored_trials import random_history, store_history, trial

from rebalance_lab.analysis import analyse as analyse_module
from rebalance_lab.analysis.analyse import ANALYSIS_FILE, analyse
from rebalance_lab.analysis.results import Analysis, LeftOut
from rebalance_lab.analysis.store import Store, read_store
from rebalance_lab.analysis.summarised import WORKER_ENDED
from rebalance_lab.api import load_store
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import Check, Finding, Outcome
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import TRIAL_FILE, History, HistoryError

SOUND = ("sound-0", "sound-1", "sound-2")


def store_imperfect(store: Path) -> dict[str, str]:
    """Sound trials, and one for each way in which a trial can be broken: its name, and a pattern for the reason."""
    for seed, name in enumerate(SOUND):
        store_history(store, random_history(name, seed + 1))
    folders = {
        name: store_history(store, random_history(name, 9))
        for name in ("cut-json", "no-seal", "broken-line", "changed", "folder-for-file", "deleted")
    }
    (folders["cut-json"] / TRIAL_FILE).write_bytes(b'{"id":')
    (folders["no-seal"] / TRIAL_FILE).write_bytes(b"{}")
    next(folders["broken-line"].glob("*.jsonl")).write_bytes(b"{}\n")
    (folders["folder-for-file"] / "m9.jsonl").mkdir()
    shutil.rmtree(folders["changed"])
    store_history(store, History(trial("changed", history_sha256="0" * 64), random_history("changed", 9).events))
    nameless = Event(actor="m1", n=0, at_us=1, layer=Layer.BELIEF, kind=Kind.OWNED, member="g_m1")
    store_history(store, History(trial("of-no-recorder"), (nameless,)))
    return {
        "cut-json": r"cut-json/trial\.json cannot be read",
        "no-seal": r"no-seal/trial\.json cannot be read",
        "broken-line": r"broken-line/\w+\.jsonl:1 is not an event",
        "changed": "changed was changed after it was sealed",
        "folder-for-file": r"folder-for-file/m9\.jsonl is not a file",
        "deleted": "deleted holds no trial.json",
        "of-no-recorder": r"^trial of-no-recorder: event \('m1', 0\)",
    }


def names(left_out: tuple[LeftOut, ...]) -> list[str]:
    return sorted(each.trial for each in left_out)


def test_the_results_of_the_others_stand(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = store_imperfect(tmp_path / "store")

    def then_deleted(path: Path) -> Store:
        store = read_store(path)
        shutil.rmtree(path / "deleted", ignore_errors=True)
        return store

    monkeypatch.setattr(analyse_module, "read_store", then_deleted)
    found = analyse(tmp_path / "store", spark=spark)
    assert names(found.left_out) == sorted(reasons)
    assert [each.why for each in found.left_out if not re.search(reasons[each.trial], each.why)] == []
    assert not found.whole
    for seed, name in enumerate(SOUND):
        store_history(tmp_path / "sound", random_history(name, seed + 1))
    alone = analyse(tmp_path / "sound", spark=spark)
    assert alone.whole
    for table in alone.tables:
        assert found.to_arrow(table) == alone.to_arrow(table), table
    assert (tmp_path / "sound" / ANALYSIS_FILE).exists()
    assert not (tmp_path / "store" / ANALYSIS_FILE).exists()


def ends_the_worker(history: History) -> Finding:
    if history.trial.id == "fatal":
        os._exit(1)
    return Finding(Outcome.CLEAN, "it lives", (), {})


def fails(history: History) -> Finding:
    if history.trial.id == "failing":
        raise ZeroDivisionError("in the check\nand more")
    return Finding(Outcome.CLEAN, "it lives", (), {})


def test_a_trial_on_which_a_check_fails_or_ends_the_worker_is_left_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for judge in (ends_the_worker, fails):
        name = judge.__name__
        monkeypatch.setitem(CHECKS, name, Check(name, (Layer.OP,), "", (), judge, applies_to=("zk",)))
    for seed, name in enumerate((*SOUND, "fatal", "failing")):
        store_history(tmp_path, random_history(name, seed + 1))
    found = analyse(tmp_path, spark=spark, intervals_for=())
    assert {each.trial: each.why for each in found.left_out} == {
        "fatal": WORKER_ENDED,
        "failing": f"the trial in {tmp_path}/failing cannot be judged: ZeroDivisionError: in the check",
    }
    assert {each.trial for each in found.outcomes} == {each.trial for each in found.measures} == set(SOUND)


def test_a_trial_that_goes_after_it_was_judged_has_no_intervals(spark: SparkSession, tmp_path: Path) -> None:
    for seed, name in enumerate(SOUND):
        store_history(tmp_path, random_history(name, seed + 1))

    def then_deleted(found: Analysis) -> list[str]:
        shutil.rmtree(tmp_path / SOUND[1])
        return [trial.id for trial in found.trials]

    found = analyse(tmp_path, spark=spark, intervals_for=then_deleted)
    assert {each.trial for each in found.intervals} == {SOUND[0], SOUND[2]}
    assert [(each.trial, "its intervals are missing" in each.why) for each in found.left_out] == [(SOUND[1], True)]


def test_a_store_of_results_asks_for_all_trials(tmp_path: Path) -> None:
    store_imperfect(tmp_path)
    with pytest.raises(HistoryError, match=r"cut-json/trial\.json cannot be read"):
        load_store(tmp_path)
