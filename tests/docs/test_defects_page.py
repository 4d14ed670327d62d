"""docs/defects.md: every id that is cited is explained, and what it tells people to type exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from rebalance_lab.checks import CHECKS
from rebalance_lab.trials.scenario import make_plan
from zkconsumer.lab_settings import CURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "defects.md").read_text()
CITED = re.compile(r"\b[FSHO][0-9]{1,2}e?\b")
PLACES = ("rebalance_lab", "zkconsumer", "controller", "newcoordinator", "tests", "docs")

#: What the page gives people to type, without the comments around it.
TYPED = [" ".join(each.split()) for each in re.findall(r"`((?:rebalance-lab|pytest) [^`]+)`", PAGE)]


def cited() -> dict[str, str]:
    """Each id that is cited outside the page, and one file that does."""
    found: dict[str, str] = {}
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            if path.suffix in {".py", ".toml", ".md"} and path.name not in {"defects.md", Path(__file__).name}:
                found |= dict.fromkeys(CITED.findall(path.read_text()), str(path.relative_to(ROOT)))
    return found


def test_every_id_that_is_cited_is_explained() -> None:
    explained = set(re.findall(r"^(?:### |\| )([FSHO][0-9]+e?) ", PAGE, re.MULTILINE))
    ids = cited()
    assert {"F1", "F11", "S1", "H2", "O1e", "O10"} <= set(ids)
    assert {each: where for each, where in ids.items() if each not in explained} == {}
    assert explained <= set(ids), "explained, and cited nowhere"


def test_every_defect_says_where_it_is_and_how_to_see_it() -> None:
    entries = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    assert len(entries) == 16
    for entry in entries:
        for said in ("- Kafka: ", "- Here: ", "- See it: ", "- Sure: "):
            assert entry.count(said) == 1, (entry.splitlines()[0], said)


def test_the_checks_are_those_there_are() -> None:
    rows = re.findall(r"^\| O[0-9]+e? \| `(\w+)`", PAGE, re.MULTILINE)
    assert len(rows) == 11
    assert set(rows) <= set(CHECKS)


def test_the_cures_are_those_there_are() -> None:
    against = {each.name for each in CURES if CITED.search(each.against)}
    assert set(re.findall(r"Cure `([\w.]+)`", PAGE)) == against


@pytest.mark.parametrize("command", sorted({each for each in TYPED if each.startswith("rebalance-lab run ")}))
def test_what_it_runs_is_a_plan(command: str) -> None:
    name, *options = shlex.split(command)[2:]
    given = list(zip(options[::2], options[1::2], strict=True))
    assert {option for option, _ in given} <= {"--set", "--rules", "--seed"}
    settings = dict(value.split("=", 1) for option, value in given if option == "--set")
    plain = {option.removeprefix("--"): value for option, value in given if option != "--set"}
    plant = settings.pop("plant", None)
    plan = make_plan(name, rules=plain.get("rules", "described"), settings=settings, plant=plant)
    assert set(plan.changed) == set(settings)  # a setting that is the default would show nothing


@pytest.mark.parametrize("command", sorted({each for each in TYPED if each.startswith("pytest ")}))
def test_the_tests_it_names_are_there(command: str) -> None:
    _, path, option, part = shlex.split(command)
    assert option == "-k"
    assert re.search(rf"^def test_\w*{part}", (ROOT / path).read_text(), re.MULTILINE)
