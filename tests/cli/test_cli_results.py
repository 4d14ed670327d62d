"""A trial's result on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.cli.results import show
from rebalance_lab.trials.api import TrialResult
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


def test_a_reason_that_several_checks_share_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    history, _ = simulate(make_plan("crash"))
    doubt = "m1 lost its connection (m1/5), and no fault explains it"
    findings = {
        "churn": Finding(Outcome.UNKNOWN, doubt),
        "omission": Finding(Outcome.UNKNOWN, f"nobody owns t/0; but {doubt}"),
        "orphan_owner": Finding(Outcome.UNKNOWN, doubt),
        "registration": Finding(Outcome.CLEAN, "all is well"),
    }
    show(TrialResult(Path("store/trial"), history.trial, findings))
    told = capsys.readouterr().out.splitlines()
    at = told.index("unknown  churn, orphan_owner")
    assert told[at + 1] == f"         {doubt}"
    assert told[at + 2] == "unknown  omission"
    assert sum(line.strip() == doubt for line in told) == 1
    assert f" nobody owns t/0; but {doubt} " in " ".join(" ".join(told).split())
    assert "clean    registration" in told


def test_a_check_that_is_clean_against_the_expectation_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    history, _ = simulate(make_plan("zombie"))
    findings = {
        "churn": Finding(Outcome.VIOLATED, "1 partition moved"),
        "effect_overlap": Finding(
            Outcome.VIOLATED, "m1 and m2 both worked on t1/0", measures={"longest_us": 1_500_000}
        ),
        "zombie_overlap": Finding(Outcome.CLEAN, "no member outlived its session"),
    }
    show(TrialResult(Path("store/trial"), history.trial, findings))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:10] == [
        "Not as expected",
        "  zombie_overlap: clean, expected violated",
        "    no member outlived its session",
        "Found, as expected",
        "  effect_overlap: violated, longest 1.500 s",
        "    m1 and m2 both worked on t1/0",
        "Found; the scenario allows clean or violated",
        "  churn: violated",
        "    1 partition moved",
    ]
    statement = "A change moves no more partitions than necessary, and interrupts none that stay."
    assert " ".join(" ".join(lines[10:12]).split()) == f"So this does not hold here: {statement}"
