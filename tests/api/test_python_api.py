"""`import rebalance_lab`: the words of the commands, from Python."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rebalance_lab as lab
from rebalance_lab.analysis import tabular
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

HEAVY = ("altair", "docker", "jinja2", "pandas", "pyarrow", "pyspark", "rich", "scipy", "typer")


def loaded(program: str) -> set[str]:
    """The modules that a program of its own has loaded at its end."""
    program += "; import sys; print(*(each for each in sys.modules if '.' not in each or each == 'rebalance_lab.api'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def zombie(store: Path) -> lab.Result:
    return lab.run("zombie", seed=7, store=store)


class TestImport:
    def test_the_package_alone_loads_nothing_heavy(self) -> None:
        assert not loaded("import rebalance_lab") & {*HEAVY, "kazoo", "rebalance_lab.api"}

    def test_a_trial_needs_neither_spark_nor_pictures_nor_the_terminal(self, tmp_path: Path) -> None:
        program = f"import rebalance_lab; rebalance_lab.run('leave', store={str(tmp_path)!r}).as_expected"
        assert not loaded(program) & set(HEAVY)

    def test_every_public_name_is_there_and_in_both_lists(self) -> None:
        import rebalance_lab.api  # noqa: PLC0415

        assert lab.__all__ == rebalance_lab.api.__all__ == sorted(lab.__all__, key=lambda name: (name.islower(), name))
        assert all(hasattr(lab, name) for name in lab.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            getattr(lab, "nothing")  # noqa: B009


class TestRun:
    def test_it_is_the_trial_of_the_command(self, zombie: lab.Result, store: Path) -> None:
        history, _ = simulate(make_plan("zombie", seed=7))
        assert zombie.trial == history.trial
        assert zombie.folder == store / "zombie-simulated-described-s7"
        assert zombie.history == history
        assert (zombie.status, zombie.as_expected) == ("as expected", True)
        assert "zombie_overlap" in zombie.violated
        assert zombie.expected["zombie_overlap"] is lab.Outcome.VIOLATED
        found = zombie.findings["zombie_overlap"]
        assert zombie.measures["zombie_overlap_longest_us"] == found.measures["longest_us"]
        assert repr(zombie) == f"<Result {zombie.trial.id}: as expected; violated: {', '.join(zombie.violated)}>"

    def test_settings_have_the_types_of_python(self, store: Path) -> None:
        mild = lab.run("zombie", pause_ms=500, together=True, group="other", store=str(store))
        chosen = mild.trial.parameters
        assert (chosen["pause_ms"], chosen["together"], chosen["group"]) == (500, True, "other")
        assert "zombie_overlap" not in mild.violated

    def test_a_planted_bug_is_a_surprise(self, store: Path) -> None:
        assert lab.run("walkthrough", plant="ignore-watch", store=store).status == "surprise"

    @pytest.mark.parametrize(
        ("name", "settings", "why"),
        [
            ("zombi", {}, "there is no scenario zombi; did you mean zombie?"),
            ("zombie", {"pause": 5}, "scenario zombie has no parameter pause; did you mean pause_ms?"),
            ("zombie", {"pause_ms": 0.5}, "pause_ms=0.5: must be a whole number"),
            ("zombie", {"world": "moon"}, "there is no world moon"),
            ("zombie", {"plant": "tree"}, "there is no planted bug tree"),
        ],
    )
    def test_errors_are_those_of_the_command(self, name: str, settings: dict[str, Any], why: str, store: Path) -> None:
        with pytest.raises(lab.PlanError, match=re.escape(why)):
            lab.run(name, store=store, **settings)


class TestSweep:
    def test_settings_of_spark_need_a_spark(self, store: Path) -> None:
        with pytest.raises(lab.PlanError, match="give master, too"):
            lab.sweep("zombie", spark_settings={"spark.executor.memory": "2g"}, store=store)

    def test_results_come_in_the_order_of_settings_and_seeds(self, store: Path) -> None:
        found = lab.sweep("zombie", seeds=[3, 1], pause_ms=[5000, 500], store=store)
        told = [(each.trial.parameters["pause_ms"], each.trial.seed) for each in found]
        assert told == [(5000, 3), (5000, 1), (500, 3), (500, 1)]
        assert (len(found), found.as_expected, found.statuses) == (4, True, {"as expected": 4})
        assert found[0].trial == found[:1][0].trial
        assert repr(found) == "<Results of 4 trials: 4 as expected>"

    def test_local_processes_give_the_same(self, store: Path) -> None:
        both = [lab.sweep("leave", seeds=3, processes=number, store=store) for number in (1, 2)]
        assert both[0] == both[1]

    def test_a_trial_that_fails_does_not_end_the_sweep(self, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(plan: Plan, store: Path, keep: api.Keeper | None = None) -> api.TrialResult:
            if plan.seed == 2:
                raise RuntimeError("no luck")
            return real(plan, store, keep)

        real = api.run
        monkeypatch.setattr(api, "run", run)
        found = lab.sweep("leave", seeds=3, store=store)
        assert [each.trial.seed for each in found] == [1, 3]
        assert [(each.plan.seed, each.why) for each in found.failed] == [(2, "RuntimeError: no luck")]
        assert (found.as_expected, found.statuses) == (False, {"as expected": 2, "failed": 1})


class TestLoad:
    def test_a_stored_trial_is_judged_as_it_was(self, zombie: lab.Result) -> None:
        assert lab.load(str(zombie.folder)) == zombie
        assert lab.judge(zombie.history) == zombie.findings

    def test_what_is_not_a_trial_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(lab.HistoryError, match=r"holds no trial\.json"):
            lab.load(tmp_path)

    def test_a_store(self, zombie: lab.Result, tmp_path: Path) -> None:
        swept = lab.sweep("leave", seeds=2, store=tmp_path)
        assert list(lab.load_store(tmp_path)) == list(swept)
        with pytest.raises(lab.HistoryError, match="not a folder"):
            lab.load_store(tmp_path / "nothing")


class TestTables:
    def test_each_is_there_for_one_trial_and_for_many(self, zombie: lab.Result, tmp_path: Path) -> None:
        many = lab.sweep("herd", seeds=2, members=[3, 4], store=tmp_path)
        assert zombie.tables == many.tables
        rows = {name: many.to_arrow(name).num_rows for name in many.tables}
        assert rows["trials"] == 4
        assert rows["outcomes"] == sum(len(each.findings) for each in many)
        assert rows["events"] == sum(len(each.history.events) for each in many)
        assert min(rows.values()) > 0
        assert zombie.to_arrow("trials").num_rows == 1

    def test_a_trial_is_a_row_with_its_settings_and_measures(self, zombie: lab.Result) -> None:
        (row,) = zombie.to_pandas("trials").to_dict("records")
        assert (row["trial"], row["seed"], row["status"]) == (zombie.trial.id, 7, "as expected")
        assert row["pause_ms"] == zombie.trial.parameters["pause_ms"]
        assert row["zombie_overlap_longest_us"] == zombie.measures["zombie_overlap_longest_us"]

    def test_a_witness_names_events(self, zombie: lab.Result) -> None:
        found = {row["check"]: row for row in zombie.to_arrow("outcomes").to_pylist()}["zombie_overlap"]
        ids = [(each["actor"], each["n"]) for each in found["witness"]]
        assert ids == list(zombie.findings["zombie_overlap"].witness)

    def test_a_table_there_is_not(self, zombie: lab.Result) -> None:
        with pytest.raises(lab.UnknownTable, match="there is no table event; there are: trials, outcomes, "):
            zombie.to_arrow("event")

    @pytest.mark.parametrize(("library", "form"), [("pandas", "to_pandas"), ("pyarrow", "to_arrow")])
    def test_a_library_that_is_missing_is_named_in_one_line(
        self, zombie: lab.Result, monkeypatch: pytest.MonkeyPatch, library: str, form: str
    ) -> None:
        def missing(*_: object) -> None:
            raise ModuleNotFoundError(f"No module named {library!r}", name=f"{library}.lib")

        monkeypatch.setattr(lab.Result, "_arrow", missing)
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(lab.MissingLibrary) as told:
            getattr(zombie, form)("trials")
        assert f"needs {library}, which is not installed here" in str(told.value)
        assert "\n" not in str(told.value)

    def test_a_bug_of_ours_is_not_called_a_missing_library(self) -> None:
        with pytest.raises(ModuleNotFoundError, match="typo"), tabular.needed_for("this"):
            raise ModuleNotFoundError("typo", name="rebalance_lab.typo")


def test_a_notebook_shows_the_story_and_the_ownership(zombie: lab.Result) -> None:
    frame = zombie._repr_html_()
    found = re.fullmatch(
        r'<iframe title="([^"]+)" srcdoc="([^"]+)" style="width: 100%; height: \d+px; [^"]+"></iframe>', frame
    )
    assert found is not None and found[1] == zombie.trial.id
    page = html.unescape(found[2])
    assert page.startswith("<!DOCTYPE html>")
    assert "m1 and m2 both believe they own t1/0–1" in page
    assert page.count('<svg class="gantt"') == 1
