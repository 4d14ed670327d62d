"""A trial's result on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.cli.results import show
from rebalance_lab.trials.api import TrialResult
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.simulated import simulate


def test_a_reason_that_several_checks_share_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    history, _ = simulate(make_plan("crash"))
    doubt = "m1 lost its connection (m1/5), and no fault was to do that"
    findings = {
        "churn": Finding(Outcome.UNKNOWN, doubt),
        "omission": Finding(Outcome.UNKNOWN, f"nobody owns t/0; but {doubt}"),
        "orphan_owner": Finding(Outcome.UNKNOWN, doubt),
        "registration": Finding(Outcome.CLEAN, "all is well"),
    }
    show(TrialResult(Path("store/trial"), history.trial, findings))
    told = capsys.readouterr().out.splitlines()
    assert "unknown churn, orphan_owner" in told
    assert told[told.index("unknown churn, orphan_owner") + 1] == f"  {doubt}"
    assert sum(line == f"  {doubt}" for line in told) == 1
    assert f" nobody owns t/0; but {doubt} " in " ".join(" ".join(told).split())
    assert "clean    registration" in told
