"""Results of trials as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.checks import checks_of
from rebalance_lab.checks.model import Outcome
from rebalance_lab.cli.history import title
from rebalance_lab.cli.terminal import say, styled, whole
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.files import load, replay_command
from rebalance_lab.report.findings import is_statement
from rebalance_lab.report.glossary import statement
from rebalance_lab.report.narrator import narrator_of
from rebalance_lab.report.text import without_ids
from rebalance_lab.report.trial_page import story_of
from rebalance_lab.trials.api import TrialResult

#: Groups of findings that are shown with their reasons, in this order.
DIFFERS = "Not as expected"
FOUND = "Found, as expected"
EITHER = "Found; the scenario allows clean or violated"
HEADINGS = (DIFFERS, FOUND, EITHER)


def shape(result: TrialResult) -> dict[str, object]:
    """The JSON of `run --json`. `measures` holds every check's numbers as CHECK_MEASURE."""
    trial = result.trial
    expected = result.expected
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
        "measures": result.measures,
    }


def show(result: TrialResult) -> None:
    """One trial on the terminal: what happened to brokers, what differs from the expectation, then anomalies, then the
    other checks by name."""
    say(f"[bold]{title(result.trial)}[/]")
    if narrator_of(result.trial.subject).is_printed:
        for sentence in story_of(load(result.folder), result.folder):
            say(sentence, markup=False)
    expected = result.expected
    shown = {name: _heading(finding.outcome, expected.get(name)) for name, finding in result.findings.items()}
    for heading in HEADINGS:
        names = [name for name, each in shown.items() if each == heading]
        if names:
            say(f"[bold]{heading}[/]")
        for name in names:
            _show_finding(result, name, expected[name] if heading == DIFFERS else None)
    for why, names in _doubts(result).items():
        say(", ".join(names), lead=f"{styled(Outcome.UNKNOWN)}  ")
        say(without_ids(why), lead="         ", markup=False)
    clean = [name for name, each in result.findings.items() if each.outcome == Outcome.CLEAN and not shown[name]]
    say(", ".join(clean) or "none", lead=f"{styled(Outcome.CLEAN)}    ")
    if unused := [name for name in checks_of(result.trial.subject) if name not in result.findings]:
        say(f"{', '.join(unused)} (nothing in this trial for them to judge)", lead="n/a      ")
    say(styled(result.status), lead="status   ")
    whole(f"history  sha256 {result.trial.history_sha256}")
    whole(f"trial    {result.folder}")
    whole(f"about    rebalance-lab scenarios {result.trial.scenario}")
    whole(f"again    {replay_command(result.folder)}")


def _heading(outcome: Outcome, expected: str | None) -> str | None:
    """The one of HEADINGS under which a finding is shown; None for a check that is only named."""
    if outcome == Outcome.UNKNOWN:
        return None
    if expected not in (None, outcome):
        return DIFFERS
    if outcome == Outcome.CLEAN:
        return None
    return EITHER if expected is None else FOUND


def _show_finding(result: TrialResult, name: str, expected: str | None) -> None:
    """One check: its name, outcome and reason. `expected`: the expected outcome, shown if not None."""
    finding = result.findings[name]
    longest = finding.measures.get("longest_us")
    facts = [styled(finding.outcome), *([f"expected {expected}"] if expected else [])]
    facts += [f"longest {seconds(longest)}"] if longest else []
    say(f"{name}: {', '.join(facts)}", lead="  ")
    say(without_ids(finding.why), lead="    ", markup=False)
    if finding.outcome == Outcome.VIOLATED and is_statement(name):
        say(f"So this does not hold here: {statement(name)}.", lead="    ", markup=False)


def _doubts(result: TrialResult) -> Mapping[str, list[str]]:
    """The reasons why checks are unknown, each with the names of its checks."""
    found: dict[str, list[str]] = {}
    for name, finding in result.findings.items():
        if finding.outcome == Outcome.UNKNOWN:
            found.setdefault(finding.why, []).append(name)
    return found


def surprising(result: TrialResult) -> list[str]:
    """Checks whose outcome the scenario rules out, in the order of CHECKS."""
    expected = result.expected
    return [name for name, each in result.findings.items() if _heading(each.outcome, expected.get(name)) == DIFFERS]
