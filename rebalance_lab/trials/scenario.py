"""What a scenario is, and the register they are found in: a new one is one new file."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rebalance_lab.assignors import ASSIGNORS
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import About, Outcome
from rebalance_lab.trials.plan import (
    MEMBER_PLANTS,
    MIXED,
    PLANTS,
    REAL,
    RULES,
    SERVERS,
    WORLDS,
    Parameter,
    Plan,
    PlanError,
    Settings,
    not_known,
)
from rebalance_lab.trials.stage import GaveUp

if TYPE_CHECKING:
    from rebalance_lab.trials.lab import Lab

#: The package whose modules register scenarios. By name: scenarios import this room, not the
#: other way round.
SCENARIO_PACKAGE = "rebalance_lab.scenarios"

#: Names of groups and topics (`kafka.common.Topic`, `kafka.consumer.ConsumerConfig`, 0.8.2).
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

#: Least and most session timeout that a ZooKeeper server grants, in ticks.
SESSION_TICKS = (2, 20)


def any_settings(plan: Plan) -> None:
    """For a scenario that does what it is for with any settings."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment.

    `script` plays it in a lab, the same in every world. `expects` gives the outcome of every
    check for a plan, reasoned beforehand; anything else is a surprise and is reported as one.
    None: for this plan either is right. `worlds`: where it can be played. `demands` raises PlanError
    for settings with which the scenario cannot do what it is for, and names what to change.
    """

    name: str
    summary: str
    claims: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    script: Callable[[Lab], Coroutine[Any, Any, None]]
    expects: Callable[[Plan], Mapping[str, Outcome | None]]
    worlds: tuple[str, ...] = WORLDS
    demands: Callable[[Plan], None] = any_settings


def usual(**otherwise: Outcome | None) -> dict[str, Outcome | None]:
    """What to expect of every check: no anomaly, and of statements nothing. `otherwise`: the
    checks of which this plan has something else to expect. Raises ValueError for a check there
    is not."""
    unknown = sorted(set(otherwise) - set(CHECKS))
    if unknown:
        raise ValueError(f"there is no check {unknown[0]}; there are: {', '.join(CHECKS)}")
    common = {name: Outcome.CLEAN if check.about is About.ANOMALY else None for name, check in CHECKS.items()}
    return {**common, **otherwise}


_SCENARIOS: dict[str, Scenario] = {}


def register(scenario: Scenario) -> Scenario:
    """Add a scenario. Raises ValueError when its name is taken by another."""
    if scenario.name in _SCENARIOS:
        raise ValueError(f"two scenarios are named {scenario.name}")
    _SCENARIOS[scenario.name] = scenario
    return scenario


@cache
def _load() -> None:
    """Import every scenario, whichever of them somebody has imported before."""
    package = importlib.import_module(SCENARIO_PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{SCENARIO_PACKAGE}.{module.name}")


def scenario_names() -> list[str]:
    """The names of all scenarios, sorted."""
    _load()
    return sorted(_SCENARIOS)


def scenario(name: str) -> Scenario:
    """The scenario of a name. Raises PlanError that names the nearest and lists all there are."""
    _load()
    if name not in _SCENARIOS:
        raise not_known(f"there is no scenario {name}", name, sorted(_SCENARIOS))
    return _SCENARIOS[name]


async def play(lab: Lab) -> None:
    """Play the plan's scenario in a lab: the same in every world. Raises GaveUp, once the history says so."""
    lab.begin()
    try:
        await scenario(lab.plan.scenario).script(lab)
    except GaveUp as late:
        lab.give_up(late)
        raise


def make_plan(
    name: str,
    *,
    world: str = "simulated",
    rules: str = "described",
    seed: int = 1,
    control: bool = False,
    settings: Mapping[str, str] | None = None,
    plant: str | None = None,
    stored: bool = False,
) -> Plan:
    """A checked plan. `settings`: texts as given to `--set`. `stored`: they come from a stored trial, which may have
    values above today's maxima. Raises PlanError."""
    chosen = scenario(name)
    one_of("world", world, WORLDS)
    if world not in chosen.worlds:
        raise PlanError(f"scenario {name} cannot be played in world {world}; it needs {' or '.join(chosen.worlds)}")
    one_of("rule set", rules, RULES)
    if plant is not None:
        one_of("planted bug", plant, tuple(PLANTS))
    at_once = {"fetcher_stop_ms": "0"} if rules in {REAL, MIXED} else {}  # on Java 17 an interrupt ends a fetch
    values, changed = Settings(chosen.parameters).values(name, {**at_once, **(settings or {})}, stored=stored)
    plan = Plan(
        scenario=name,
        world=world,
        rules=rules,
        seed=seed,
        control=control,
        parameters=values,
        plant=plant,
        changed=changed,
    )
    for what in ("latency", "start"):
        if plan.number(f"{what}_min_us") > plan.number(f"{what}_max_us"):
            raise PlanError(f"{what}_min_us is above {what}_max_us")
    within_ticks(plan.number("tick_ms"), plan.number("session_timeout_ms"))
    _names(plan)
    _real_members(plan)
    one_of("size of an ensemble (servers)", plan.text("servers"), tuple(str(each) for each in SERVERS))
    if plant == "two-owners" and world != "simulated":
        raise PlanError("plant two-owners sits in the simulated server; it needs --world simulated")
    chosen.demands(plan)
    return plan


def _names(plan: Plan) -> None:
    """What Kafka takes for the name of a group or topic, and an assignor there is."""
    for parameter in ("group", "topic"):
        legal_name(parameter, plan.text(parameter))
    if plan.text("assignor"):
        one_of("assignor", plan.text("assignor"), tuple(sorted(ASSIGNORS)))


def _real_members(plan: Plan) -> None:
    """What a ConsoleConsumer cannot do, and what a trial with real brokers is not made for."""
    if not plan.has_real_members:
        return
    if plan.world != "processes":
        raise PlanError(f"real members need real processes: --world processes, not {plan.world}")
    if plan.plant in MEMBER_PLANTS:
        raise PlanError(f"plant {plan.plant} sits in members of ours; real ones have none")
    for name, least in (("streams", 1), ("brokers", 1)):
        if plan.number(name) != least:
            raise PlanError(f"{name}={plan.number(name)}: with real members there is {least}")
    if plan.operations != "all":
        raise PlanError("real members tell each operation: use --set ops=all")
    if plan.text("assignor") not in {"", "range", "roundrobin"}:
        raise PlanError(f"assignor={plan.text('assignor')}: 0.8.2.2 knows range and roundrobin")


def legal_name(parameter: str, name: str) -> None:
    """Raises PlanError for what Kafka does not take for the name of a group or topic."""
    if not LEGAL_NAME.fullmatch(name):
        raise PlanError(f"{parameter}={name}: a name of letters, digits, '.', '_' and '-' is needed")


def within_ticks(tick_ms: int, session_ms: int) -> None:
    """A server grants sessions of 2 to 20 ticks. Others would be other experiments than asked for:
    raises PlanError."""
    if not SESSION_TICKS[0] * tick_ms <= session_ms <= SESSION_TICKS[1] * tick_ms:
        least, most = (ticks * tick_ms for ticks in SESSION_TICKS)
        raise PlanError(f"session_timeout_ms={session_ms}: a server with tick_ms={tick_ms} grants {least} to {most} ms")


def one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    """Raises PlanError for what is none of `known`: it names them, and what was perhaps meant."""
    if value not in known:
        raise not_known(f"there is no {what} {value}", value, known)
