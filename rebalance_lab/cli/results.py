"""Trials' results as JSON and as tables."""

from __future__ import annotations

from collections.abc import Mapping

from rich.markup import escape

from rebalance_lab.cli.terminal import answer, seconds, styled, table
from rebalance_lab.history.checks import CHECKS
from rebalance_lab.trials import api
from rebalance_lab.trials.api import TrialResult, replay_command


def expectations(result: TrialResult) -> Mapping[str, str]:
    """The outcome that the scenario expects of each check; none where either is right."""
    return {name: outcome for name, outcome in api.expectation(result.trial).items() if outcome is not None}


def shape(result: TrialResult) -> dict[str, object]:
    """The JSON of `run --json`. `measures` holds every check's numbers as CHECK_MEASURE."""
    trial = result.trial
    expected = expectations(result)
    return {
        "trial": trial.id,
        "scenario": trial.scenario,
        "world": trial.world,
        "seed": trial.seed,
        "history_sha256": trial.history_sha256,
        "status": result.status,
        "checks": {
            name: {
                "outcome": finding.outcome,
                "expected": expected.get(name),
                "why": finding.why,
                "witness": finding.witness,
            }
            for name, finding in result.findings.items()
        },
        "measures": {
            f"{name}_{measure}": number
            for name, finding in result.findings.items()
            for measure, number in finding.measures.items()
        },
    }


def show(result: TrialResult) -> None:
    """One trial on the terminal."""
    trial = result.trial
    facts = [trial.scenario, trial.world, trial.rules, f"seed {trial.seed}"]
    facts += ["control"] if trial.control else []
    facts += [f"planted bug {trial.plant}"] if trial.plant else []
    expected = expectations(result)
    rows = []
    for name, finding in result.findings.items():
        longest = seconds(finding.measures["longest_us"]) if finding.measures.get("longest_us") else ""
        layers = " / ".join(CHECKS[name].compares) if name in CHECKS else ""
        rows.append((name, layers, styled(finding.outcome), expected.get(name, ""), longest, escape(finding.why)))
    console = answer()
    columns = ("check", "compares", "outcome", "expected", "longest", "why")
    console.print(table(" · ".join(facts), columns, rows, numbers=("longest",)))
    console.print(f"status   {styled(result.status)}")
    console.print(f"history  sha256 {trial.history_sha256}", soft_wrap=True)
    console.print(f"trial    {result.folder}", soft_wrap=True, markup=False)
    console.print(f"again    {replay_command(result.folder)}", soft_wrap=True, markup=False)
