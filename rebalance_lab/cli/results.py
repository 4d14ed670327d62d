"""Trials' results as JSON and as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rebalance_lab.checks.model import Outcome
from rebalance_lab.cli.terminal import answer, say, styled
from rebalance_lab.history.durations import seconds
from rebalance_lab.trials import api
from rebalance_lab.trials.api import TrialResult, replay_command

#: `<group>_host-<actor>-<ms>-<8 hex>`: see `zkconsumer.identifiers`.
_CONSUMER_ID = re.compile(r"[^\s,]+_host-(m\d+)-\d{13}-[0-9a-f]{1,8}")

#: What is said of an outcome for which the scenario has no expectation.
EITHER = "the scenario allows clean and violated"


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
    say(f"[bold]{' · '.join(facts)}[/]")
    shared = _shared_doubts(result)
    for name, finding in result.findings.items():
        if finding.outcome == Outcome.UNKNOWN and finding.why in shared:
            continue
        if finding.outcome != Outcome.CLEAN or name in _missed(result):
            _show_finding(result, name)
    for why, names in shared.items():
        say(f"{styled(Outcome.UNKNOWN)} {', '.join(names)}")
        say(_with_actors(why), lead="  ", markup=False)
    clean = [name for name, each in result.findings.items() if each.outcome == Outcome.CLEAN]
    say(", ".join(clean) or "nothing", lead=f"{styled('clean')}    ")
    say(styled(result.status), lead="status   ")
    console = answer()
    console.print(f"history  sha256 {trial.history_sha256}", soft_wrap=True)
    console.print(f"trial    {result.folder}", soft_wrap=True, markup=False)
    console.print(f"again    {replay_command(result.folder)}", soft_wrap=True, markup=False)


def _show_finding(result: TrialResult, name: str) -> None:
    """A finding that is worth a look: its outcome, what was expected, and why."""
    finding = result.findings[name]
    expected = expectations(result).get(name)
    said = EITHER if expected is None else "as expected" if expected == finding.outcome else f"not {expected}!"
    longest = finding.measures.get("longest_us")
    say(f"{styled(finding.outcome)} {name} ({said}{f', longest {seconds(longest)}' if longest else ''})")
    say(_with_actors(finding.why), lead="  ", markup=False)


def _shared_doubts(result: TrialResult) -> Mapping[str, list[str]]:
    """Why several checks are unknown at once, with their names."""
    found: dict[str, list[str]] = {}
    for name, finding in result.findings.items():
        if finding.outcome == Outcome.UNKNOWN:
            found.setdefault(finding.why, []).append(name)
    return {why: names for why, names in found.items() if len(names) > 1}


def _missed(result: TrialResult) -> list[str]:
    """Checks that are clean where something else was expected."""
    expected = expectations(result)
    return [name for name, each in result.findings.items() if expected.get(name, each.outcome) != each.outcome]


def _with_actors(text: str) -> str:
    """Consumer ids that the lab's hosts made are long; the member's actor is in them."""
    return _CONSUMER_ID.sub(r"\1", text)
