"""What a scenario is, and the registry of scenarios: a new scenario is one new file."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rebalance_lab.assignors import ASSIGNORS, BUILT_IN
from rebalance_lab.checks import checks_of
from rebalance_lab.checks.model import ZK, About, Outcome
from rebalance_lab.history.files import MAX_SEED
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

#: The package whose modules register scenarios. It is imported by name, because scenarios import this module.
SCENARIO_PACKAGE = "rebalance_lab.scenarios"

#: Names of groups and topics (`kafka.common.Topic`, `kafka.consumer.ConsumerConfig`, 0.8.2).
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")

#: The shortest and the longest session timeout that a ZooKeeper server grants, in ticks.
SESSION_TICKS = (2, 20)


def any_settings(plan: Plan) -> None:
    """For a scenario that works with any settings."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment.

    `script` plays it in a lab; it is the same in every world. `expects` gives the outcome of every check of its subject
    for a plan, derived beforehand; any other outcome is reported as a surprise. None means that both are allowed.
    `worlds`: where it can be played. `demands` raises PlanError for settings with which the scenario cannot do its
    work, and names what to change.
    """

    name: str
    summary: str
    claims: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    script: Callable[[Lab], Coroutine[Any, Any, None]]
    expects: Callable[[Plan], Mapping[str, Outcome | None]]
    worlds: tuple[str, ...] = WORLDS
    demands: Callable[[Plan], None] = any_settings


def usual(subject: str = ZK, /, **otherwise: Outcome | None) -> dict[str, Outcome | None]:
    """The usual expectation of every check of a subject: no anomaly, and any outcome of statements. `otherwise`: the
    checks for which a plan expects something else. Raises ValueError for an unknown check."""
    checks = checks_of(subject)
    unknown = sorted(set(otherwise) - set(checks))
    if unknown:
        raise ValueError(f"there is no check {unknown[0]} of {subject}; there are: {', '.join(checks)}")
    common = {name: Outcome.CLEAN if check.about is About.ANOMALY else None for name, check in checks.items()}
    return {**common, **otherwise}


_SCENARIOS: dict[str, Scenario] = {}


def register(scenario: Scenario) -> Scenario:
    """Add a scenario. Raises ValueError if its name is taken."""
    if scenario.name in _SCENARIOS:
        raise ValueError(f"two scenarios are named {scenario.name}")
    _SCENARIOS[scenario.name] = scenario
    return scenario


@cache
def _load() -> None:
    """Import every scenario, even if some have been imported before."""
    package = importlib.import_module(SCENARIO_PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{SCENARIO_PACKAGE}.{module.name}")


def scenario_names() -> list[str]:
    """The names of all scenarios, sorted."""
    _load()
    return sorted(_SCENARIOS)


def scenario(name: str) -> Scenario:
    """The scenario of a name. Raises PlanError that suggests the nearest name and lists all."""
    _load()
    if name not in _SCENARIOS:
        raise not_known(f"there is no scenario {name}", name, sorted(_SCENARIOS))
    return _SCENARIOS[name]


async def play(lab: Lab) -> None:
    """Play the plan's scenario in a lab. Raises GaveUp after recording it."""
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
    if not 0 <= seed <= MAX_SEED:
        raise PlanError(f"seed {seed}: must be 0 to {MAX_SEED}")
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
            raise PlanError(f"{what}_min_us is above {what}_max_us; set it to at most that")
    within_ticks(plan.number("tick_ms"), plan.number("session_timeout_ms"))
    _names(plan)
    _real_members(plan)
    one_of("size of an ensemble (servers)", plan.text("servers"), tuple(str(each) for each in SERVERS))
    if plant == "two-owners" and world != "simulated":
        raise PlanError("plant two-owners is a bug of the simulated server: use --world simulated")
    chosen.demands(plan)
    return plan


def _names(plan: Plan) -> None:
    """Check the names of group and topic against Kafka's rules, and that the assignor exists."""
    for parameter in ("group", "topic"):
        legal_name(parameter, plan.text(parameter))
    if assignor := plan.text("assignor"):
        one_of("assignor", assignor, tuple(sorted(ASSIGNORS)))
        if plan.world != "simulated" and assignor not in BUILT_IN:
            raise PlanError(
                f"assignor {assignor} is this program's; members of world {plan.world} have processes of their own, "
                f"which know {', '.join(BUILT_IN)}: use world simulated"
            )


def _real_members(plan: Plan) -> None:
    """Refuse what a ConsoleConsumer cannot do, and settings that a trial with real brokers does not support."""
    if not plan.has_real_members:
        return
    if plan.world != "processes":
        raise PlanError(f"real members need real processes: --world processes, not {plan.world}")
    if plan.plant in MEMBER_PLANTS:
        raise PlanError(f"plant {plan.plant} is a bug of our members; real members do not have it")
    for name, least in (("streams", 1), ("brokers", 1)):
        if plan.number(name) != least:
            raise PlanError(f"{name}={plan.number(name)}: with real members it must be {least}")
    if plan.operations != "all":
        raise PlanError("each operation of real members is recorded: use --set ops=all")
    if plan.text("assignor") not in {"", "range", "roundrobin"}:
        raise PlanError(f"assignor={plan.text('assignor')}: real members of 0.8.2.2 have only range and roundrobin")


def legal_name(parameter: str, name: str) -> None:
    """Raises PlanError for a name that Kafka does not accept for a group or topic."""
    if not LEGAL_NAME.fullmatch(name):
        raise PlanError(f"{parameter}={name}: use only letters, digits, '.', '_' and '-'")


def within_ticks(tick_ms: int, session_ms: int) -> None:
    """Raises PlanError for a session timeout outside of 2 to 20 ticks: the server would grant another, so the
    experiment would not be the one asked for."""
    if not SESSION_TICKS[0] * tick_ms <= session_ms <= SESSION_TICKS[1] * tick_ms:
        least, most = (ticks * tick_ms for ticks in SESSION_TICKS)
        raise PlanError(f"session_timeout_ms={session_ms}: a server with tick_ms={tick_ms} grants {least} to {most} ms")


def one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    """Raises PlanError if `value` is not among `known`. It suggests the nearest name and lists all."""
    if value not in known:
        raise not_known(f"there is no {what} {value}", value, known)
