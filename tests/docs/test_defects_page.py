"""docs/defects.md: every id that is cited is explained, and what it tells people to type shows what it says."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from rebalance_lab.checks import CHECKS, Finding, Outcome, judge
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate
from zkconsumer.lab_settings import CURES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "defects.md").read_text()
CITED = re.compile(r"\b[FSHO][0-9]{1,2}e?\b")
PLACES = ("rebalance_lab", "zkconsumer", "controller", "newcoordinator", "tests", "docs")

#: What the page gives people to type, without the comments around it.
TYPED = [" ".join(each.split()) for each in re.findall(r"`((?:rebalance-lab|pytest) [^`]+)`", PAGE)]

RUN = sorted({each for each in TYPED if each.startswith("rebalance-lab run ")})

#: (command, checks): the table's rows, and the commands that are followed by checks in parentheses.
SHOWN = [
    (command, (check,)) for check, command in re.findall(r"^\| O\w+ \| `(\w+)` .* `([^`]+)` \|$", PAGE, re.MULTILINE)
]
SHOWN += [
    (" ".join(command.split()), tuple(re.findall(r"\w+", checks)))
    for command, checks in re.findall(r"`(rebalance-lab run [^`]+)` \(((?:`\w+`(?:, )?)+)\)", PAGE)
]


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
    assert len(entries) == 48
    for entry in entries:
        for said in ("- Kafka: ", "- Here: ", "- See it: ", "- Evidence: "):
            assert entry.count(said) == 1, (entry.splitlines()[0], said)


def test_the_checks_are_those_there_are() -> None:
    rows = re.findall(r"^\| O[0-9]+e? \| `(\w+)`", PAGE, re.MULTILINE)
    assert len(rows) == 11
    assert set(rows) <= set(CHECKS)


def test_the_cures_are_those_there_are() -> None:
    against = {each.name for each in CURES if CITED.search(each.against)}
    assert set(re.findall(r"Cure\s+`([\w.]+)`", PAGE)) == against


def planned(command: str) -> Plan:
    """The plan of a `rebalance-lab run …`."""
    name, *options = shlex.split(command)[2:]
    given = list(zip(options[::2], options[1::2], strict=True))
    assert {option for option, _ in given} <= {"--set", "--rules", "--seed"}
    settings = dict(value.split("=", 1) for option, value in given if option == "--set")
    plain = {option.removeprefix("--"): value for option, value in given if option != "--set"}
    plant = settings.pop("plant", None)
    rules, seed = plain.get("rules"), int(plain.get("seed", 1))
    plan = make_plan(name, rules=rules, seed=seed, settings=settings, plant=plant)
    assert set(plan.changed) == set(settings)  # a setting that is the default would show nothing
    return plan


@cache
def ran(command: str) -> tuple[History, dict[str, Finding]]:
    history, _ = simulate(planned(command))
    return history, judge(history)


@pytest.mark.parametrize("command", RUN)
def test_what_it_runs_comes_out_as_expected(command: str) -> None:
    history, found = ran(command)
    status = api.TrialResult(Path(), history.trial, found).status
    assert status == (api.TrialStatus.SURPRISE if history.trial.plant else api.TrialStatus.AS_EXPECTED)


@pytest.mark.parametrize(("command", "checks"), SHOWN)
def test_what_it_runs_shows_what_it_says(command: str, checks: tuple[str, ...]) -> None:
    _, found = ran(command)
    assert {check: found[check].outcome for check in checks} == dict.fromkeys(checks, Outcome.VIOLATED)


def test_the_trials_that_it_shows_were_run() -> None:
    shown = {shlex.split(each)[3] for each in TYPED if each.startswith("rebalance-lab history show ")}
    assert len(shown) == 2
    assert shown <= {f"trials/{planned(each).trial_id}" for each in RUN}


def test_a_member_vanishes_in_the_trial_of_f3() -> None:
    (command,) = (each for each in RUN if each.startswith("rebalance-lab run flapping "))
    failed = [event for event in ran(command)[0].events if event.kind is Kind.ATTEMPT_FAILED]
    assert [event for event in failed if re.match(r"NoNode: .*/ids/", str(event.of("why")))]


@pytest.mark.parametrize("command", sorted({each for each in TYPED if each.startswith("pytest ")}))
def test_the_tests_it_names_are_there(command: str) -> None:
    _, path, option, part = shlex.split(command)
    assert option == "-k"
    assert re.search(rf"^def test_\w*{part}", (ROOT / path).read_text(), re.MULTILINE)
