"""What a scenario is, and the registry of scenarios: a new scenario is one new file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict

from rebalance_lab.checks import checks_of
from rebalance_lab.checks.model import ZK, Outcome
from rebalance_lab.history.files import MAX_SEED, Trial
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.trials.lab import FaultBug
from rebalance_lab.trials.plan import (
    OURS,
    SERVERS,
    WORLDS,
    Parameter,
    Plan,
    PlanError,
    Settings,
    Value,
    command_listing,
    command_listing_plants,
    one_of,
)
from rebalance_lab.trials.stage import GaveUp, Stage
from rebalance_lab.trials.subject import Subject
from rebalance_lab.world.simulated.settings import ServerBug

#: The package whose modules each have a SCENARIO. It is imported by name, because scenarios import this module.
SCENARIO_PACKAGE = "rebalance_lab.scenarios"

#: The shortest and the longest session timeout that a ZooKeeper server grants, in ticks.
SESSION_TICKS = (2, 20)


def any_settings(plan: Plan) -> None:
    """For a scenario that works with any settings."""


def only_ours(why: str) -> Callable[[Plan], None]:
    """For a scenario that real nodes cannot play (`Scenario.real`)."""

    def refuse(plan: Plan) -> None:
        raise PlanError(f"scenario {plan.scenario} cannot be played with real {plan.kind_of_nodes}: {why}")

    return refuse


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment. `claims`: the claims that it tests.

    `script` plays it in the lab of its `subject`; it is the same in every world. `expects` gives the outcome of every
    check of the subject for a plan, derived beforehand; any other outcome is reported as a surprise. None means that
    both are allowed. `worlds`: where it can be played. `demands` raises PlanError for settings with which the scenario
    cannot do its work, and names what to change. `real` does so for a plan whose nodes are real (`Subject.real`), if it
    asks for what they do not do.
    """

    name: str
    subject: Subject
    summary: str
    parameters: tuple[Parameter, ...]
    script: Callable[[Any], Coroutine[Any, Any, None]]
    expects: Callable[[Plan], Mapping[str, Outcome | None]]
    claims: tuple[str, ...] = ()
    worlds: tuple[str, ...] = WORLDS
    demands: Callable[[Plan], None] = any_settings
    real: Callable[[Plan], None] = any_settings

    @property
    def description(self) -> str:
        """What happens and why, as Markdown: the docstring of the module of its script."""
        return inspect.getdoc(inspect.getmodule(self.script)) or ""


def usual(subject: str = ZK, /, **otherwise: Outcome | None) -> dict[str, Outcome | None]:
    """The usual expectation of every check of a subject: no anomaly, and any outcome of statements. `otherwise`: the
    checks for which a plan expects something else. Raises ValueError for an unknown check."""
    checks = checks_of(subject)
    unknown = sorted(set(otherwise) - set(checks))
    if unknown:
        raise ValueError(f"there is no check {unknown[0]} of {subject}; there are: {', '.join(checks)}")
    common = {name: None if check.statement else Outcome.CLEAN for name, check in checks.items()}
    return {**common, **otherwise}


_SCENARIOS: dict[str, Scenario] = {}


def register(scenario: Scenario) -> None:
    """Add a scenario, and declare its subject. Raises ValueError if its name is taken, or that of a check."""
    if scenario.name in _SCENARIOS:
        raise ValueError(f"two scenarios are named {scenario.name}")
    scenario.subject.declare()
    _SCENARIOS[scenario.name] = scenario


@cache
def _load() -> None:
    """Register the scenario of each module."""
    package = importlib.import_module(SCENARIO_PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        register(importlib.import_module(f"{SCENARIO_PACKAGE}.{module.name}").SCENARIO)


def scenario_names() -> list[str]:
    """The names of all scenarios, sorted."""
    _load()
    return sorted(_SCENARIOS)


def scenario(name: str) -> Scenario:
    """The scenario of a name. Raises PlanError that suggests the nearest name, and says what lists all."""
    one_of("scenario", name, scenario_names(), command_listing())
    return _SCENARIOS[name]


def subject_named(name: str) -> Subject | None:
    """The subject of that name; None if no scenario has it."""
    _load()
    return next((each.subject for each in _SCENARIOS.values() if each.subject.name == name), None)


def plants_of(subject: Subject) -> tuple[PlantedBug, ...]:
    """The bugs that trials of a subject may plant: its own, and those of the faults."""
    _load()
    parts = (*subject.plants, *FaultBug.__subclasses__())
    return tuple(bug for part in parts for bug in part)


async def play(stage: Stage) -> None:
    """Play the scenario of a stage's plan. Raises GaveUp after recording it."""
    found = scenario(stage.plan.scenario)
    lab = found.subject.lab(stage)
    lab.begin()
    try:
        await found.script(lab)
    except GaveUp as late:
        lab.give_up(late)
        raise


class PlanOptions(TypedDict, total=False):
    """How a scenario is run, apart from its settings: arguments of `make_plan`."""

    world: str
    rules: str | None
    implementation: str
    control: bool


def make_plan(
    name: str,
    *,
    world: str = "simulated",
    rules: str | None = None,
    implementation: str = OURS,
    seed: int = 1,
    control: bool = False,
    settings: Mapping[str, Value] | None = None,
    plant: str | None = None,
    stored: bool = False,
) -> Plan:
    """A checked plan. `rules`: by default the subject's first, or that of its real nodes. `settings`: values, or texts
    as given to `--set`. `stored`: they come from a stored trial, which may have values above today's maxima. Raises
    PlanError."""
    chosen = scenario(name)
    one_of("world", world, WORLDS)
    if world not in chosen.worlds:
        raise PlanError(f"scenario {name} cannot be played in world {world}; it needs {' or '.join(chosen.worlds)}")
    rules = chosen.subject.rules_with(implementation, rules)
    if not 0 <= seed <= MAX_SEED:
        raise PlanError(f"seed {seed}: must be 0 to {MAX_SEED}")
    if plant is not None:
        one_of("planted bug", plant, plants_of(chosen.subject), command_listing_plants(name))
    real = None if implementation == OURS else chosen.subject.real
    theirs = {} if real is None else real.settings
    values, changed = Settings(chosen.parameters).values(name, {**theirs, **(settings or {})}, stored=stored)
    plan = Plan(
        scenario=name,
        world=world,
        rules=rules,
        implementation=implementation,
        seed=seed,
        control=control,
        parameters=values,
        plant=plant,
        changed=changed,
    )
    for what in ("latency", "start"):
        if plan.number(f"{what}_min_us") > plan.number(f"{what}_max_us"):
            raise PlanError(f"{what}_min_us is above {what}_max_us; set it to at most that")
    within_ticks(plan.number("tick_ms"), plan.number("session_timeout_ms"))
    one_of("size of an ensemble (servers)", plan.text("servers"), tuple(str(each) for each in SERVERS))
    if plant in tuple(ServerBug) and world != "simulated":
        raise PlanError(f"plant {plant} is a bug of the simulated server: use --world simulated")
    if plan.has_real_nodes and world != "processes":
        raise PlanError(f"real {plan.kind_of_nodes} need real processes: --world processes, not {world}")
    chosen.subject.demands(plan)
    chosen.demands(plan)
    if plan.has_real_nodes:
        chosen.real(plan)
    return plan


def plan_like(of: Plan | Trial, *, control: bool = False, **changed: Value) -> Plan:
    """The plan of a stored trial, or a plan like another, with these settings changed; the control if `control`.
    Raises PlanError, also if this lab no longer has the scenario."""
    return make_plan(
        of.scenario,
        world=of.world,
        rules=of.rules,
        implementation=of.implementation,
        seed=of.seed,
        control=control or of.control,
        settings={**of.parameters, **changed},
        plant=of.plant,
        stored=True,
    )


def within_ticks(tick_ms: int, session_ms: int) -> None:
    """Raises PlanError for a session timeout outside of 2 to 20 ticks: the server would grant another, so the
    experiment would not be the one asked for."""
    if not SESSION_TICKS[0] * tick_ms <= session_ms <= SESSION_TICKS[1] * tick_ms:
        least, most = (ticks * tick_ms for ticks in SESSION_TICKS)
        raise PlanError(f"session_timeout_ms={session_ms}: a server with tick_ms={tick_ms} grants {least} to {most} ms")
