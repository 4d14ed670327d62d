"""How many trials of each kind there are, and what their checks found: what a page counts, whatever number of trials.

Trials are of one kind if they differ in nothing but the seed. Where an analysis has the rows of all its trials these
functions count them; otherwise Spark did (`tables.trial_counts`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.analysis.results import Analysis, KindCount, OutcomeCount, TrialOutcome, of_trial
from rebalance_lab.analysis.store import parameter_texts

_FACTS = ("scenario", "world", "rules", "control", "plant")
_Kind = tuple[str, str, str, bool, str | None, tuple[tuple[str, str], ...]]


def kind_counts_of(analysis: Analysis) -> tuple[KindCount, ...]:
    """The kinds of trials, in no order."""
    if analysis.sampled:
        return analysis.kinds
    judged = {each.trial: each for each in analysis.outcomes}
    parameters = _parameters(analysis)
    trials = Counter(_kind(of_trial(trial), parameters) for trial in analysis.trials)
    with_findings = Counter(_kind(_facts(each), parameters) for each in judged.values())
    return tuple(
        KindCount(*kind, trials=trials[kind], judged=with_findings[kind])
        for kind in dict.fromkeys([*trials, *with_findings])
    )


def outcome_counts_of(analysis: Analysis) -> tuple[OutcomeCount, ...]:
    """What the checks found in each kind of trials, in no order."""
    if analysis.sampled:
        return analysis.counts
    parameters = _parameters(analysis)
    found: dict[tuple[_Kind, str, str], list[TrialOutcome]] = {}
    for each in analysis.outcomes:
        found.setdefault((_kind(_facts(each), parameters), each.check, each.outcome), []).append(each)
    return tuple(_counted(kind, check, outcome, alike) for (kind, check, outcome), alike in found.items())


def _counted(kind: _Kind, check: str, outcome: str, alike: Sequence[TrialOutcome]) -> OutcomeCount:
    lengths = [each.longest_us for each in alike]
    return OutcomeCount(
        *kind,
        check=check,
        outcome=outcome,
        trials=len(alike),
        shortest_us=min(lengths),
        longest_us=max(lengths),
        first=min((each.seed, each.trial) for each in alike)[1],
    )


def _parameters(analysis: Analysis) -> dict[str, tuple[tuple[str, str], ...]]:
    return {trial.id: tuple(sorted(parameter_texts(trial))) for trial in analysis.trials}


def _facts(outcome: TrialOutcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in ("trial", *_FACTS)}


def _kind(facts: Mapping[str, Any], parameters: Mapping[str, tuple[tuple[str, str], ...]]) -> _Kind:
    """`facts`: the columns of OfTrial."""
    scenario, world, rules, control, plant = (facts[name] for name in _FACTS)
    return (scenario, world, rules, control, plant, parameters.get(facts["trial"], ()))
