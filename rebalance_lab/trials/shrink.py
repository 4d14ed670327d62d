"""Shrinking a simulated trial: finding a smaller plan that shows the same finding.

It works for any scenario, with the parameters that it declares (type, default, minimum). It tries the
following, from coarse to fine, and again until nothing helps or the runs are used up:

1. the control, if the finding does not need the fault at all;
2. each setting at its default, each switch off, each name dropped from a list of names;
3. each count (members, partitions, streams, brokers, …) lower, by halving the distance to its minimum;
4. each duration shorter, likewise.

A smaller plan has another schedule, so each is tried with a few seeds. A plan is taken if it shows the
finding in a history with fewer events (or, for a default, not more), as the history is what people read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, Trial, load
from rebalance_lab.trials.api import TrialResult, expectation, run
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.trials.names import missing
from rebalance_lab.trials.plan import LISTING_CHECKS, Parameter, Plan, PlanError, Value, run_command
from rebalance_lab.trials.scenario import plan_like, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


@dataclass(frozen=True, slots=True)
class Target:
    """A finding: the outcome of a check, whether it was a surprise, and the kinds of the events that witness it.
    `unknown`: the checks that were unknown.

    The kinds and the unknown checks keep a search from drifting to another finding: a group without brokers also owns
    nothing, but that differs from a forgotten partition, and a trial that never comes to rest shows less than one
    that does.
    """

    check: str
    outcome: Outcome
    surprise: bool
    witness: tuple[Kind, ...]
    unknown: tuple[str, ...]

    def shown_by(self, history: History, findings: Mapping[str, Finding]) -> bool:
        """Whether a trial shows the same finding, and decides as many other checks."""
        other = _finding(history, findings, self.check)
        return (
            other is not None
            and (other.outcome, other.surprise, other.witness) == (self.outcome, self.surprise, self.witness)
            and all(name in self.unknown for name in other.unknown)
        )


def target_of(history: History, check: str | None) -> Target:
    """The finding to keep: that of `check`, else the first surprise, else the only violation. Raises TrialError: no
    such check, nothing worth keeping, or several violations to choose from."""
    findings = judge(history)
    found = {name: target for name in findings if (target := _finding(history, findings, name)) is not None}
    if check is not None:
        if check not in CHECKS:
            raise TrialError(missing(f"there is no check {check}", check, CHECKS, all_by=LISTING_CHECKS))
        target = found.get(check)
        if target is None or not (target.surprise or target.outcome is Outcome.VIOLATED):
            outcome = "does not apply" if target is None else f"is {target.outcome}, and no surprise"
            raise TrialError(f"{check} {outcome} in {history.trial.id}: there is nothing to keep")
        return target
    surprises = [target for target in found.values() if target.surprise]
    if surprises:
        return surprises[0]
    violated = [target for target in found.values() if target.outcome is Outcome.VIOLATED]
    if len(violated) == 1:
        return violated[0]
    if violated:
        names = ", ".join(target.check for target in violated)
        raise TrialError(f"{history.trial.id} has several violated checks; choose one with --check: {names}")
    raise TrialError(f"{history.trial.id} has no surprise and no violated check: there is nothing to keep")


def _finding(history: History, findings: Mapping[str, Finding], check: str) -> Target | None:
    """The finding of a check in a trial; None if it does not apply."""
    finding = findings.get(check)
    if finding is None:
        return None
    expected = expectation(history.trial)[check]
    surprise = expected is not None and finding.outcome not in {expected, Outcome.UNKNOWN}
    kinds = {event.id: event.kind for event in history.events}
    witness = tuple(kinds[event_id] for event_id in finding.witness)
    unknown = tuple(name for name, each in findings.items() if each.outcome is Outcome.UNKNOWN)
    return Target(check, finding.outcome, surprise, witness, unknown)


#: The default number of simulated trials that shrinking may run.
RUNS_LIMIT = 200

#: The number of seeds with which each smaller plan is tried: the trial's own, then 1, 2, …
SEEDS_TRIED = 3

#: Units of durations, and the least share of the events that a shorter duration must save: a change
#: that saves nothing only makes a plan harder to read.
DURATIONS = frozenset({"ms", "µs", "us", "s"})
LEAST_GAIN = 0.05

#: The number of values of one parameter tried in one pass: more precision is not worth the runs.
HALVINGS_LIMIT = 8

#: Called with the number of a run that begins, and the number of events in the smallest history so far.
OnRun = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """`result`: the smallest trial found, stored; the trial itself if there is none. `events`: the length of the
    history, before and after. `changes`: the differences between the plans."""

    target: Target
    before: Trial
    result: TrialResult
    events: tuple[int, int]
    changes: tuple[str, ...]
    command: str
    runs: int


def shrink(
    folder: Path,
    store: Path,
    *,
    check: str | None = None,
    runs_limit: int = RUNS_LIMIT,
    on_run: OnRun | None = None,
) -> Shrunk:
    """Shrink the stored trial `folder`; the smallest trial found is stored in `store`.

    `check`: the check whose finding is to be kept; by default the first surprise, or the only violated check. For
    what counts as the same finding, see `Target`.

    Raises TrialError if there is nothing to keep, or if the trial does not show it when it is run again;
    HistoryError, PlanError and OSError as reading and running do.
    """
    history = load(folder)
    if history.trial.world != "simulated":
        raise TrialError(f"{history.trial.id} ran on real processes; only simulated trials are shrunk")
    target = target_of(history, check)
    plan = plan_like(history.trial)
    search = _Search(plan, target, runs_limit, on_run)
    search.go()
    result = run(search.best, store)
    if not target.shown_by(load(result.folder), result.findings):
        raise TrialError(f"{result.trial.id} shows another outcome of {target.check} when it is run again: {folder}")
    return Shrunk(
        target,
        history.trial,
        result,
        (len(history.events), search.events),
        changes(plan, search.best),
        run_command(search.best, store),
        search.runs,
    )


def changes(before: Plan, after: Plan) -> tuple[str, ...]:
    """The differences between two plans of one scenario, in words."""
    said = ["the control"] if after.control and not before.control else []
    for name, value in after.parameters.items():
        if value != before.parameters[name]:
            said.append(f"{name} {before.parameters[name]} -> {value}")
    if after.seed != before.seed:
        said.append(f"seed {before.seed} -> {after.seed}")
    return tuple(said)


class _Spent(Exception):
    """No runs are left."""


class _Try(Enum):
    TAKEN = "it shows the target in fewer events"
    SAVES_NOTHING = "it shows the target, in as many events"
    NOT_SEEN = "it shows something else, or is not a valid plan"


class _Search:
    """The smallest plan so far, and the ways to make it smaller."""

    def __init__(self, plan: Plan, target: Target, runs_limit: int, on_run: OnRun | None) -> None:
        self.best = plan
        self.events = 0
        self.runs = 0
        self._target = target
        self._limit = runs_limit
        self._on_run = on_run
        self._parameters = scenario(plan.scenario).parameters
        self._tried: dict[str, int | None] = {}

    def go(self) -> None:
        """Raises TrialError if the plan itself does not show the target."""
        shown = self._shows(self.best)
        if shown is None:
            raise TrialError(f"{self.best.trial_id} does not show the finding when it is run again: see `replay`")
        self.events = shown
        try:
            while self._pass():
                pass
        except _Spent:
            return

    def _pass(self) -> bool:
        """Try everything once. True if something helped."""
        before = self.best
        if not before.control:
            self._take(self._plan(control=True))
        for parameter in self._parameters:
            self._simplify(parameter)
        for durations in (False, True):
            for parameter in self._parameters:
                if (parameter.unit in DURATIONS) == durations:
                    self._lower(parameter)
        return self.best != before

    def _simplify(self, parameter: Parameter) -> None:
        """Set it to its default, switch it off, or drop a name."""
        for value in _simpler(parameter, self.best.parameters[parameter.name]):
            if self._take(self._plan(parameter, value), gain=int(value != parameter.default)) is _Try.TAKEN:
                return

    def _lower(self, parameter: Parameter) -> None:
        """Lower it as far as the target still shows: to the minimum, else by halving the distance to it."""
        high, low = self.best.parameters[parameter.name], parameter.minimum
        if isinstance(high, bool) or not isinstance(high, int) or low is None:
            return
        least_gain = LEAST_GAIN if parameter.unit in DURATIONS else 0
        value = low
        for _ in range(HALVINGS_LIMIT):
            if value >= high:
                return
            tried = self._take(self._plan(parameter, value), gain=max(1, round(least_gain * self.events)))
            if tried is _Try.SAVES_NOTHING:
                return  # nothing depends on it
            if tried is _Try.TAKEN:
                high = value
            else:
                low = value
            value = low + max(1, (high - low) // 2)

    def _plan(self, parameter: Parameter | None = None, value: Value = 0, *, control: bool = False) -> Plan | None:
        """The best plan with one thing changed; None if that is not a valid plan."""
        changed = {} if parameter is None else {parameter.name: value}
        try:
            return plan_like(self.best, control=control, **changed)
        except PlanError:
            return None

    def _take(self, plan: Plan | None, gain: int = 0) -> _Try:
        """Try a plan with a few seeds. Keep it if it shows the target and saves `gain` events."""
        if plan is None:
            return _Try.NOT_SEEN
        others = [seed for seed in range(1, SEEDS_TRIED + 1) if seed != plan.seed]
        for seed in [plan.seed, *others][:SEEDS_TRIED]:
            candidate = msgspec.structs.replace(plan, seed=seed)
            events = self._shows(candidate)
            if events is None:
                continue
            if events > self.events - gain:
                return _Try.SAVES_NOTHING
            self.best, self.events = candidate, events
            return _Try.TAKEN
        return _Try.NOT_SEEN

    def _shows(self, plan: Plan) -> int | None:
        """The number of events in the plan's history if it shows the target, else None. Raises _Spent."""
        key = f"{plan.trial_id} {plan.parameters}"
        if key not in self._tried:
            if self.runs >= self._limit:
                raise _Spent
            self.runs += 1
            if self._on_run is not None:
                self._on_run(self.runs, self.events)
            self._tried[key] = self._run(plan)
        return self._tried[key]

    def _run(self, plan: Plan) -> int | None:
        try:
            history, _ = simulate(plan)
            shown = self._target.shown_by(history, judge(history))
        except Exception:  # an error of any kind is not the finding that is looked for
            return None
        return len(history.events) if shown else None


def _simpler(parameter: Parameter, value: Value) -> Iterator[Value]:
    """Values that make a plan simpler without being smaller numbers."""
    if value != parameter.default:
        yield parameter.default
    if value is True and parameter.default is not False:
        yield False
    if isinstance(value, str) and "," in value:
        names = value.split(",")
        for index in range(len(names)):
            yield ",".join(names[:index] + names[index + 1 :])
