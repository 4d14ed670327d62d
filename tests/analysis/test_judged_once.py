"""Trials are judged once: what is kept serves while it is true, and no counterfeit of it gives a verdict."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from pyspark.sql import SparkSession
from stored_trials import random_history, results_of, store_history
from verdict_story import reproduced

from rebalance_lab.analysis import analyse as analyse_module
from rebalance_lab.analysis import session, summarised
from rebalance_lab.analysis.analyse import ANALYSIS_FILE, analyse
from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.kept import Header, code_that_judges, keep, kept, key_of
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.results import MEASURES, Analysis, LeftOut, TrialMeasures
from rebalance_lab.analysis.store import Store, document_of, history_row, named_by_folder, read_store
from rebalance_lab.analysis.tables import trial_results
from rebalance_lab.analysis.tables.trial_results import RESULTS, judged_row, result_row
from rebalance_lab.analysis.tally import count_one, counted
from rebalance_lab.analysis.trialwise.judged import JUDGEMENT_FILE, keep_judgement
from rebalance_lab.analysis.workers import Row
from rebalance_lab.history.files import TRIAL_FILE, History, HistoryError, digest, load, read_trial, trial_folders
from rebalance_lab.trials import api

LIE = "a finding that no check made"


def store_sealed(store: Path, name: str, seed: int) -> None:
    history = random_history(name, seed)
    trial = msgspec.structs.replace(history.trial, history_sha256=digest(history.events))
    store_history(store, History(trial, history.events))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three trials."""
    store = tmp_path / "store"
    for seed in range(3):
        store_sealed(store, f"t{seed}", seed + 1)
    return store


def judged(store: Path, *, rejudge: bool = False) -> dict[str, Row]:
    """RESULTS of a store by trial, as Spark's workers make them."""
    rows = rows_to_judge(store)
    return {row["trial"]: result_row(row, rejudge=rejudge) for row in rows}


def rows_to_judge(store: Path) -> list[Row]:
    found = read_store(store)
    return [history_row(folder, found.seen[name][0]) for name, folder in found.folders.items()]


def lies(found: dict[str, Row]) -> set[str]:
    """The trials of which a finding is not what a check found."""
    return {trial for trial, row in found.items() if any(finding["why"] == LIE for finding in row["findings"])}


def lying(body: bytes) -> bytes:
    """A judgement whose every finding lies."""
    fields = msgspec.json.decode(body)
    for finding in fields["judgement"]["findings"]:
        finding["why"] = LIE
    return msgspec.json.encode(fields)


def key_in(path: Path) -> str:
    return msgspec.json.decode(path.read_bytes().partition(b"\n")[0], type=Header).key


def key_of_judgement(folder: Path) -> str:
    return key_in(folder / JUDGEMENT_FILE)


def forge(folder: Path, key: str | None = None) -> None:
    """A whole file that lies, under the key that the trial's judgement has, or under another."""
    own = key_of_judgement(folder)
    body = kept(folder / JUDGEMENT_FILE, own)
    assert body is not None
    keep(folder / JUDGEMENT_FILE, key or own, lying(body))


# -- the judgements of trials ---------------------------------------------------------------------


def test_a_judged_trial_is_not_judged_again_unless_asked(store: Path) -> None:
    truth = judged(store)
    assert judged(store) == truth
    forge(store / "t1")
    assert lies(judged(store)) == {"t1"}  # it was read, not judged
    assert judged(store, rejudge=True) == truth
    assert judged(store) == truth  # and the lie is gone


def test_nothing_is_kept_where_the_code_that_judges_is_not_known(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = judged(store)
    forge(store / "t1")
    monkeypatch.setattr(trial_results, "code_that_judges", lambda: None)
    assert judged(store) == truth
    assert kept(store / "t1" / JUDGEMENT_FILE, key_of_judgement(store / "t1")), "and nothing was written"


def test_a_judgement_lies_under_history_trial_and_code(store: Path) -> None:
    judged(store)
    folder = store / "t0"
    trial = named_by_folder(read_trial(folder), folder)
    assert key_of_judgement(folder) == key_of(code_that_judges(), document_of(trial), trial.history_sha256)


def other_code(folder: Path) -> None:
    trial = read_trial(folder)
    forge(folder, key_of("other code", document_of(trial), trial.history_sha256))


def of_another_trial(folder: Path) -> None:
    forge(folder.with_name("t2"))
    shutil.copyfile(folder.with_name("t2") / JUDGEMENT_FILE, folder / JUDGEMENT_FILE)
    (folder.with_name("t2") / JUDGEMENT_FILE).unlink()


def half_written(folder: Path) -> None:
    forge(folder)
    whole = (folder / JUDGEMENT_FILE).read_bytes()
    (folder / JUDGEMENT_FILE).write_bytes(whole[: len(whole) // 2])


def edited(folder: Path) -> None:
    header, _, body = (folder / JUDGEMENT_FILE).read_bytes().partition(b"\n")
    (folder / JUDGEMENT_FILE).write_bytes(header + b"\n" + lying(body))


def another_history(folder: Path) -> None:
    """The trial was run again under its name."""
    forge(folder)
    lie = (folder / JUDGEMENT_FILE).read_bytes()
    shutil.rmtree(folder)
    store_sealed(folder.parent, folder.name, 77)
    (folder / JUDGEMENT_FILE).write_bytes(lie)


def under_another_name(folder: Path) -> None:
    forge(folder)
    folder.rename(folder.with_name("renamed"))


@pytest.mark.parametrize(
    "counterfeit", [other_code, of_another_trial, half_written, edited, another_history, under_another_name]
)
def test_no_counterfeit_of_a_judgement_is_used(store: Path, counterfeit: Callable[[Path], None]) -> None:
    judged(store)
    counterfeit(store / "t1")
    found = judged(store)
    assert not lies(found)
    assert found == judged(store, rejudge=True)


def test_a_folder_that_cannot_be_written_is_judged_all_the_same(store: Path) -> None:
    truth = judged(store)
    for folder in trial_folders(store):
        (folder / JUDGEMENT_FILE).unlink()
        (folder / JUDGEMENT_FILE).mkdir()
    assert judged(store) == truth


def test_who_runs_a_trial_keeps_what_is_found_of_it(store: Path) -> None:
    truth = judged(store)
    for folder in trial_folders(store):
        (folder / JUDGEMENT_FILE).unlink()
        keep_judgement(folder, load(folder))
        forge(folder)
    assert lies(judged(store)) == {"t0", "t1", "t2"}
    assert judged(store, rejudge=True) == truth


def test_a_trial_that_was_run_here_is_not_judged_again(tmp_path: Path) -> None:
    """Its parameters have another order in memory than in its file."""
    ran = api.run(api.make_plan("walkthrough"), tmp_path, keep_judgement)
    assert list(load(ran.folder).trial.parameters) != list(ran.trial.parameters)
    forge(ran.folder)
    assert lies(judged(tmp_path)) == {ran.trial.id}


def test_a_trial_whose_files_look_different_is_read_but_not_judged_again(store: Path) -> None:
    """As after a copy: its events still have the SHA-256 that was sealed."""
    judged(store)
    forge(store / "t1")
    moved = store.with_name("copied")
    shutil.copytree(store, moved)
    assert lies(judged(moved)) == {"t1"}
    events = moved / "t1" / "m1.jsonl"
    events.write_bytes(events.read_bytes().replace(b'"n":1', b'"n":2', 1))
    with pytest.raises(HistoryError, match=r"t1 was changed after it was sealed"):
        judged(moved)


def test_spark_reads_what_is_kept(store: Path, spark: SparkSession) -> None:
    judged(store)
    forge(store / "t1")
    with results_of(spark, store) as results:
        assert results.schema == RESULTS
        assert lies({row["trial"]: row for row in rows_of(results)}) == {"t1"}


def test_trials_are_counted_as_they_are_judged(store: Path, local_spark: session.LocalSpark) -> None:
    (store / "t1" / TRIAL_FILE).write_bytes(b"{}")  # it is not judged
    before = local_spark.judged
    with results_of(local_spark.session, store) as results:
        assert len(rows_of(results)) == 2
        assert local_spark.judged - before == 2
        assert len(rows_of(results)) == 2
    assert local_spark.judged - before == 2, "what Spark keeps is not judged again"


def test_a_count_is_there_at_once_and_goes_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "judged"
    count_one(str(file))
    count_one(None)
    assert counted(file) == 0 and not file.exists(), "a worker that does not see the driver's folder makes nothing"
    file.touch()
    for number in (1, 2):
        count_one(str(file))
        assert counted(file) == number
    file.unlink()
    assert counted(file) == 0


# -- the analysis of a store ----------------------------------------------------------------------


@dataclass
class Summaries:
    """In place of Spark's: how often a store was summarised."""

    times: int = 0

    def __call__(
        self, _spark: object, store: Store, _ledger: Ledger, *, rejudge: bool, most: int | None
    ) -> tuple[Analysis, list[str]]:
        self.times += 1
        assert most is None
        histories = [History(trial, load(store.folders[trial.id]).events) for trial in store.trials]
        assert rejudge in (False, True)
        measures = tuple(trial_measures_of(each) for each in histories)
        reproduced = tuple(replace(VERDICT, witness=each.trial.id) for each in histories)
        return Analysis(reproduced, (), (), tuple(store.trials), store.cut_off, measures), [histories[0].trial.id]


def trial_measures_of(history: History) -> TrialMeasures:
    return TrialMeasures(history.trial.id, **dict.fromkeys(MEASURES, len(history.events)))


VERDICT = reproduced()


@pytest.fixture
def summaries(monkeypatch: pytest.MonkeyPatch) -> Summaries:
    found = Summaries()
    monkeypatch.setattr(summarised, "summarise", found)
    return found


def analysed(store: Path, *, rejudge: bool = False, wanted: Sequence[str] | None = ()) -> Analysis:
    return analyse(store, spark=cast("Any", None), intervals_for=wanted, rejudge=rejudge)


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "start", lambda **_: nullcontext(SimpleNamespace(session=None)))


def test_an_unchanged_store_is_summarised_once(store: Path, summaries: Summaries) -> None:
    first = analysed(store, wanted=None)
    assert first == analysed(store, wanted=None)
    assert summaries.times == 1
    assert first.trials == tuple(read_store(store).trials)
    assert {each.trial for each in first.intervals} == {"t0"}
    assert first == analysed(store, wanted=None, rejudge=True)
    assert summaries.times == 2


def test_commands_name_the_store_where_it_is_now(store: Path, summaries: Summaries) -> None:
    analysed(store)
    moved = store.rename(store.with_name("moved"))
    assert analysed(moved).verdicts[1].replay == f"rebalance-lab replay {moved}/t1"
    assert summaries.times == 1


def come(store: Path) -> None:
    store_sealed(store, "new", 50)


def gone(store: Path) -> None:
    shutil.rmtree(store / "t1")


def run_again(store: Path) -> None:
    shutil.rmtree(store / "t1")
    store_sealed(store, "t1", 51)


def renamed(store: Path) -> None:
    (store / "t1").rename(store / "t9")


def cut(store: Path) -> None:
    whole = (store / ANALYSIS_FILE).read_bytes()
    (store / ANALYSIS_FILE).write_bytes(whole[:-100])


def other_key(store: Path) -> None:
    _, _, body = (store / ANALYSIS_FILE).read_bytes().partition(b"\n")
    keep(store / ANALYSIS_FILE, key_of("other"), body)


def of_other_tables(store: Path) -> None:
    """Whole and under the right key, but not what this lab writes."""
    key = key_in(store / ANALYSIS_FILE)
    keep(store / ANALYSIS_FILE, key, b'{"analysis":{},"examples":[]}')


@pytest.mark.parametrize("change", [come, gone, run_again, renamed, cut, other_key, of_other_tables])
def test_what_a_store_keeps_is_not_used_once_anything_differs(
    store: Path, summaries: Summaries, change: Callable[[Path], None]
) -> None:
    analysed(store)
    change(store)
    found = analysed(store)
    assert summaries.times == 2
    assert {each.trial for each in found.measures} == {folder.name for folder in trial_folders(store)}
    assert found == analysed(store, rejudge=True)


@pytest.mark.parametrize("file", [TRIAL_FILE, "m1.jsonl"])
@pytest.mark.usefixtures("summaries")
def test_a_trial_that_was_changed_by_hand_is_named(store: Path, file: str) -> None:
    """Also if its size and its times are what they were."""
    analysed(store)
    path = store / "t1" / file
    before, stat = path.read_bytes(), path.stat()
    at = before.index(b'seed": ' if file == TRIAL_FILE else b'"n":') + (7 if file == TRIAL_FILE else 4)
    path.write_bytes(before[:at] + (b"8" if before[at : at + 1] == b"9" else b"9") + before[at + 1 :])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    left_out = read_store(store).left_out if file == TRIAL_FILE else left_out_of_results(store)
    assert [(out.trial, "was changed after it was sealed" in out.why) for out in left_out] == [("t1", True)]


def left_out_of_results(store: Path) -> list[LeftOut]:
    """The trials whose events cannot be read, as Spark's workers find them."""
    found = [judged_row(row) for row in rows_to_judge(store)]
    return [LeftOut(row["trial"], row["why_left_out"]) for row in found if row["why_left_out"]]


def test_another_ledger_or_other_code_is_summarised_anew(
    store: Path, summaries: Summaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = read_ledger()
    analyse(store, ledger=ledger, intervals_for=())
    analyse(store, ledger=Ledger(dict(reversed(ledger.claims.items()))), intervals_for=())
    assert summaries.times == 2
    monkeypatch.setattr(analyse_module, "code_that_judges", lambda: "other code")
    analysed(store)
    assert summaries.times == 3
    monkeypatch.setattr(analyse_module, "code_that_judges", lambda: None)
    analysed(store)
    analysed(store)
    assert summaries.times == 5


@pytest.mark.usefixtures("summaries")
def test_a_store_that_cannot_be_written_keeps_nothing(store: Path) -> None:
    (store / ANALYSIS_FILE).mkdir()
    assert analysed(store).measures == analysed(store).measures


@pytest.mark.usefixtures("summaries")
def test_intervals_are_of_the_trial_as_it_is_named_in_the_store(store: Path) -> None:
    found = analysed(store, wanted=["t0", "t2"]).intervals
    assert [each.trial for each in found] == sorted(each.trial for each in found)
    assert sum(each.trial == "t2" for each in found) == len(analysed(store, wanted=["t2"]).intervals) > 0
    assert load(store / "t2").trial.id == "t2"
