"""The trials that a page shows: for each verdict its witness, a control and a sister from the other
world, if the analysis has them; and one trial of every other scenario."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.analysis.claims import Sorted, sort
from rebalance_lab.analysis.ledger import Status
from rebalance_lab.analysis.results import Analysis, Verdict
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.files import Trial

#: Statuses in the order of a page: decided ones before undecided ones.
STATUS_ORDER = (Status.SURPRISE, Status.AS_EXPECTED, Status.DOES_NOT_APPLY, Status.UNKNOWN, Status.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Choice:
    """Trials to show together. `verdicts` is empty if no claim depends on the witness; such a choice is `brief` if
    there are others: its story and one picture are enough."""

    verdicts: tuple[Verdict, ...]
    witness: Trial
    control: Trial | None
    sister: Trial | None
    brief: bool = False

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in (self.witness, self.control, self.sister) if trial is not None)


def by_status(analysis: Analysis) -> Sorted:
    """The readings in the order of a page."""
    return sort(analysis.verdicts, STATUS_ORDER)


def choose(analysis: Analysis) -> tuple[Choice, ...]:
    """The trials to show by verdict, then the most instructive trial of each other scenario."""
    known = {trial.id: trial for trial in analysis.trials}
    witnesses: dict[str, list[Verdict]] = {}
    found = by_status(analysis)
    for verdict in (*found.tested, *found.constructed):
        if verdict.witness is not None and verdict.witness in known:
            witnesses.setdefault(verdict.witness, []).append(verdict)
    others = _others(analysis, {known[trial].scenario for trial in witnesses})
    alone = len(witnesses) + len(others) == 1
    return (
        *(_choice(analysis, known[trial], tuple(verdicts)) for trial, verdicts in witnesses.items()),
        *(_choice(analysis, trial, ()) if alone else Choice((), trial, None, None, brief=True) for trial in others),
    )


def _choice(analysis: Analysis, witness: Trial, verdicts: tuple[Verdict, ...]) -> Choice:
    return Choice(verdicts, witness, _control(analysis, witness), _sister(analysis, witness))


def shown_trials(analysis: Analysis) -> tuple[str, ...]:
    """Ids of the trials whose histories a page needs, without repetition."""
    return tuple(dict.fromkeys(trial.id for choice in choose(analysis) for trial in choice.trials))


def _others(analysis: Analysis, covered: set[str]) -> list[Trial]:
    """One trial of each other scenario. Preferred are trials with their fault, violated checks, live ones, and those
    as described, in this order."""
    violated = {each.trial for each in analysis.outcomes if each.outcome == Outcome.VIOLATED}
    best: dict[str, Trial] = {}

    def rank(trial: Trial) -> tuple[object, ...]:
        odd = (trial.plant is not None, trial.control, trial.id not in violated, trial.world == "simulated")
        return (*odd, trial.variant, trial.seed, trial.id)

    for trial in sorted(analysis.trials, key=rank):
        if trial.scenario not in covered:
            best.setdefault(trial.scenario, trial)
    return [best[name] for name in sorted(best)]


def _control(analysis: Analysis, witness: Trial) -> Trial | None:
    """The control most like the witness: same world, rules, parameters, seed, in that order."""
    controls = [
        trial
        for trial in analysis.trials
        if trial.control and trial.scenario == witness.scenario and trial.plant is None and trial.id != witness.id
    ]
    return min(controls, key=lambda trial: _distance(trial, witness), default=None)


def _sister(analysis: Analysis, witness: Trial) -> Trial | None:
    """The same scenario in the other world."""
    sisters = [
        trial
        for trial in analysis.trials
        if trial.scenario == witness.scenario
        and trial.world != witness.world
        and trial.control == witness.control
        and trial.plant == witness.plant
    ]
    return min(sisters, key=lambda trial: _distance(trial, witness), default=None)


def _distance(trial: Trial, witness: Trial) -> tuple[bool, bool, int, bool, str]:
    differing = sum(trial.parameters.get(name) != value for name, value in witness.parameters.items())
    world, variant = trial.world != witness.world, trial.variant != witness.variant
    return (world, variant, differing, trial.seed != witness.seed, trial.id)
