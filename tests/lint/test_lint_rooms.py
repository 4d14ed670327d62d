"""Where the rules hold, the limits of size, and the lint's own command."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.house_lint.__main__ import main
from scripts.house_lint.model import parse
from scripts.house_lint.rooms import ALL_ROOMS, PROTOCOL_ROOMS, lint, problems_of

PROJECT = Path(__file__).parents[2]


def rules(name: str, text: str) -> list[str]:
    return [problem.rule for problem in problems_of(parse(name, text))]


def test_the_project_keeps_the_rules():
    assert [str(problem) for problem in lint(PROJECT)] == []


def test_every_room_named_is_there():
    missing = [room for room in (*PROTOCOL_ROOMS, *ALL_ROOMS) if not (PROJECT / room).is_dir()]
    assert missing == []


@pytest.mark.parametrize("room", PROTOCOL_ROOMS)
def test_protocol_rules_hold_in_protocol_rooms(room):
    assert rules(f"{room}/deep/example.py", "import time\nfor x in {1, 2}: pass\n") == ["world-import", "set-iteration"]


@pytest.mark.parametrize("name", ["rebalance_lab/world/live/session.py", "rebalance_lab/kernel/x.py", "tests/x.py"])
def test_protocol_rules_hold_nowhere_else(name):
    assert rules(name, "import time\nfor x in {1, 2}: pass\n") == []


def test_a_module_of_the_limit_is_too_long():
    assert rules("rebalance_lab/cli/x.py", "x = 1\n" * 399) == []
    assert rules("rebalance_lab/cli/x.py", "x = 1\n" * 500) == ["module-size"]


def test_a_function_of_the_limit_is_too_long():
    body = "def f():\n" + "    x = 1\n" * 58
    assert rules("tests/x.py", body) == []
    assert rules("tests/x.py", body + "    x = 1\n") == ["function-size"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zkconsumer").mkdir()
    return tmp_path


def test_command_clean(project, capsys):
    (project / "zkconsumer" / "good.py").write_text("x = 1\n")
    assert main([]) == 0
    assert capsys.readouterr().out == "1 files keep the house's rules\n"


def test_command_problem(project, capsys):
    (project / "zkconsumer" / "bad.py").write_text("import random\n")
    assert main(["zkconsumer/bad.py"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("zkconsumer/bad.py:1: world-import: ")
    assert out.endswith("1 problems in 1 files\n")


def test_command_unreadable(project, capsys):
    (project / "zkconsumer" / "bad.py").write_text("def (:\n")
    assert main([]) == 2
    assert "zkconsumer/bad.py:1" in capsys.readouterr().err


def test_command_bad_path(project, capsys):
    assert main(["nowhere"]) == 2
    assert "nowhere does not exist" in capsys.readouterr().err
