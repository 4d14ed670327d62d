"""A check is found by its file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from history_story import Story

from rebalance_lab import checks
from rebalance_lab.checks import CHECKS, Check, Finding, Outcome, discover
from rebalance_lab.trials.scenario import plants_of, subject_named

_FILE = """
from rebalance_lab.checks.model import Check, Finding, Outcome

CHECK = Check({name!r}, (), "m", (), lambda history: Finding(Outcome.CLEAN, "w"), ("toy",))
"""


def test_the_checks_of_the_lab_are_there_in_order() -> None:
    assert list(CHECKS) == sorted(CHECKS)
    assert set(CHECKS) >= {"belief_overlap", "effect_overlap", "registration", "registry_overlap", "unowned_window"}


def test_judge_asks_every_check_that_applies() -> None:
    history = Story().history()
    assert list(checks.judge(history)) == [
        name for name, check in checks.checks_of(history.trial.subject).items() if check.applies(history)
    ]


@pytest.mark.parametrize("name", list(CHECKS))
def test_every_check_says_what_it_means_and_has_a_planted_bug(name: str) -> None:
    check = CHECKS[name]
    assert check.meaning.endswith(".")
    assert check.compares
    assert check.plants
    subjects = [subject for name in check.applies_to if (subject := subject_named(name)) is not None]
    assert {planted.bug for planted in check.plants} <= {bug for subject in subjects for bug in plants_of(subject)}


def test_a_check_of_another_subject_is_registered_and_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECKS", dict(CHECKS))
    other = Check("stopped_clock", (), "m", (), lambda _history: Finding(Outcome.CLEAN, "w"), ("toy",))
    checks.register(other)
    assert checks.checks_of("toy") == {"stopped_clock": other}
    assert "stopped_clock" not in checks.judge(Story().history())
    with pytest.raises(ValueError, match="two checks are named stopped_clock"):
        checks.register(other)


def _package(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))  # what is imported here is forgotten after
    return [str(package)]


def test_a_new_check_is_one_new_file_and_helpers_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _package(tmp_path, "new_checks", monkeypatch)
    (Path(path[0]) / "orphan.py").write_text(_FILE.format(name="orphan"))
    (Path(path[0]) / "churn.py").write_text(_FILE.format(name="churn"))
    (Path(path[0]) / "helper.py").write_text("LIMIT = 3\n")
    found = discover("new_checks", path)
    assert [(name, check.name) for name, check in found.items()] == [("churn", "churn"), ("orphan", "orphan")]


@pytest.mark.parametrize("text", [_FILE.format(name="other"), "CHECK = 3\n"])
def test_a_check_must_bear_its_file_s_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = _package(tmp_path, "bad_checks", monkeypatch)
    (Path(path[0]) / "orphan.py").write_text(text)
    with pytest.raises(TypeError, match=r"bad_checks\.orphan\.CHECK must be a Check named 'orphan'"):
        discover("bad_checks", path)
