"""The samples that `agree` compares: live trials from a store or run now, and simulated trials run now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from statistics import median

import msgspec

from rebalance_lab.analysis.agreement.causes import Live
from rebalance_lab.analysis.agreement.measures import Measured, measured
from rebalance_lab.checks import judge
from rebalance_lab.cli.terminal import progress, watched
from rebalance_lab.history.files import Trial, digest, load, read_trial, trial_folders
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stages.simulated.stage import simulate

#: Parameters that only the simulator uses. Live trials may differ in them.
SIMULATED_ONLY = ("latency_min_us", "latency_max_us", "start_min_us", "start_max_us")


@dataclass(frozen=True, slots=True)
class LiveSample:
    """Live trials that differ only in their seeds. `stored`: how many were in the store already. `failed`: trials
    that did not complete, which are not in the sample."""

    world: Live
    plan: Plan
    trials: tuple[Measured, ...]
    stored: int
    failed: tuple[api.FailedTrial, ...]


def simulated_plan(live: Plan) -> Plan:
    """The simulated counterpart of a live plan, with stand-ins for real members (`zk_group.lab.stand_in`)."""
    return msgspec.structs.replace(live, world="simulated")


def slowed_plan(plan: Plan, live: Iterable[Measured], simulated: Iterable[Measured]) -> Plan | None:
    """A simulated plan whose latency makes the average operation as long as in the median live trial. `simulated`:
    trials of `plan`. None if live operations are not longer than theirs, or were not recorded."""
    lived_us, simulated_us = (
        [trial.operation_us for trial in trials if trial.operation_us is not None] for trials in (live, simulated)
    )
    # The difference, because a fault holds up operations in both worlds.
    longer_us = round(median(lived_us) - median(simulated_us)) if lived_us and simulated_us else 0
    if longer_us <= 0:
        return None
    # An operation takes two messages, each with a mean latency of half of minimum and maximum.
    slowed = {**plan.parameters, "latency_max_us": plan.number("latency_max_us") + longer_us}
    return msgspec.structs.replace(plan, parameters=slowed)


def simulated_sample(plan: Plan, number: int, processes: int) -> list[Measured]:
    """`number` trials of a simulated plan, with seeds 1, 2, ….

    They are run anew and not stored: a simulated trial depends only on its plan and the lab's code, and running it
    takes no longer than reading it. A stored one may come from another version of the lab.
    """
    plans = (with_seed(plan, seed) for seed in range(1, number + 1))
    return list(watched(api.each_of(plans, measure_simulated, processes), number, "simulated"))


def measure_simulated(plan: Plan) -> Measured:
    """Run one simulated trial, and keep only its values."""
    history, _ = simulate(plan)
    return measured(history, judge(history))


def live_sample(world: Live, plan: Plan, number: int, store: Path) -> LiveSample:
    """`number` trials of a live plan: those in the store, whatever their seeds, and new ones for the rest, run one at
    a time. Raises HistoryError, PlanError, OSError, EmbeddedServerError."""
    found = dict(islice(stored_trials(plan, store), number))
    seeds = {trial.seed for trial in found.values()}
    free = (seed for seed in count(1) if seed not in seeds)
    plans = [with_seed(plan, seed) for seed in islice(free, number - len(found))]
    if plans:
        progress().print(f"{len(found)} of {number} live trials are in the store; running {len(plans)}, one at a time")
    ended = list(watched(api.attempts(plans, store, 1), len(plans), world)) if plans else []
    folders = [*found, *(each.folder for each in ended if isinstance(each, api.TrialResult))]
    failed = tuple(each for each in ended if isinstance(each, api.FailedTrial))
    return LiveSample(world, plan, tuple(measure_stored(folder) for folder in folders), len(found), failed)


def stored_trials(plan: Plan, store: Path) -> Iterator[tuple[Path, Trial]]:
    """The store's trials of a plan with any seed, ordered by seed. Of each history only one, because a copied folder
    is not another trial. Raises HistoryError."""
    trials = [(folder, read_trial(folder)) for folder in trial_folders(store)]
    alike = [(folder, trial) for folder, trial in trials if _kind(trial) == _kind(plan)]
    seen: set[str] = set()
    for folder, trial in sorted(alike, key=lambda each: (each[1].seed, each[0].name)):
        history = trial.history_sha256 or digest(load(folder).events)
        if history not in seen:
            seen.add(history)
            yield folder, trial


def measure_stored(folder: Path) -> Measured:
    """The values of a stored trial. Raises HistoryError."""
    history = load(folder)
    return measured(history, judge(history))


def with_seed(plan: Plan, seed: int) -> Plan:
    return msgspec.structs.replace(plan, seed=seed)


def _kind(of: Plan | Trial) -> tuple[object, ...]:
    """Everything that trials of one sample have in common."""
    parameters = {name: value for name, value in of.parameters.items() if name not in SIMULATED_ONLY}
    return (of.scenario, of.world, of.variant, of.control, of.plant, parameters)
