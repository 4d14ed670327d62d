"""Plans: everything that defines a trial, checked before anything starts."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from rebalance_lab.kernel.errors import LabError
from rebalance_lab.kernel.numerals import number, whole_number
from rebalance_lab.trials.names import missing

Value = int | float | str | bool

Operations = Literal["all", "counts"]

OPS = ("auto", "all", "counts")

#: Sizes of an ensemble: a majority must be able to live without one server.
SERVERS = (1, 3, 5)

#: Above this many members a history holds counts of operations instead of each.
MANY_MEMBERS = 100

WORLDS = ("simulated", "processes", "containers")

#: Whose nodes take part: ours; those of the original program (Kafka 0.8.2.2's own consumers, Kafka 3.9.1's brokers); or
#: both in turn. Then the first is ours with an odd seed, and real with an even one. In the simulator our nodes stand in
#: for real ones (`subjects.zk_group.lab`). Only `agree` runs such trials, and does not store them: they are no evidence
#: on Kafka.
OURS, REAL, MIXED = IMPLEMENTATIONS = ("ours", "real", "mixed")


class PlanError(LabError, ValueError):
    """The plan cannot be carried out. The message names the setting and what is possible."""


def one_of(what: str, value: str, known: Iterable[str], all_by: str | None = None) -> None:
    """Raises PlanError if `value` is not among `known`. It suggests the nearest name, and lists all or names what does
    (`all_by`, see `names.missing`)."""
    names = tuple(known)
    if value not in names:
        raise PlanError(missing(f"there is no {what} {value}", value, names, all_by=all_by))


#: The largest value of a numeric setting, by unit: far above what any experiment needs. With more, a trial would run
#: for days or fill the memory. Durations: 3 hours for ms, 10 minutes for µs.
MAXIMA: dict[str, int] = {
    "partitions": 10_000,
    "brokers": 1_000,
    "members": 5_000,
    "servers": max(SERVERS),
    "streams": 1_000,
    "attempts": 100_000,
    "times": 10_000,
    "ms": 10_800_000,
    "µs": 600_000_000,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One setting of a scenario. Its type is the type of its default.

    `minimum`, `maximum`: bounds of a number; the maximum is that of the unit (MAXIMA) unless given. `choices`: the
    allowed texts; empty for any. Raises ValueError for a number without a maximum, or a default above it.
    """

    name: str
    default: Value
    unit: str
    help: str
    minimum: int | None = None
    choices: tuple[str, ...] = ()
    maximum: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.default, (bool, str)):
            return
        maximum = MAXIMA.get(self.unit) if self.maximum is None else self.maximum
        if maximum is None or self.default > maximum:
            raise ValueError(f"parameter {self.name}: give it a maximum that is not below its default {self.default}")
        object.__setattr__(self, "maximum", maximum)

    def parse(self, given: Value, *, stored: bool = False) -> Value:
        """A value that is given as such, or as a command line's text. A stored trial's value may exceed the maximum.
        Raises PlanError."""
        text = value_text(given)
        value = given if type(given) is type(self.default) else self._typed(text)
        if self.choices and text not in self.choices:
            raise PlanError(f"{self.name}={text}: must be one of {', '.join(self.choices)}")
        if isinstance(value, (int, float)):
            if self.minimum is not None and value < self.minimum:
                raise PlanError(f"{self.name}={text}: must be {self.minimum} or more")
            if self.maximum is not None and value > self.maximum and not stored:
                raise PlanError(f"{self.name}={text}: must be {self.maximum} or less")
        return value

    def _typed(self, text: str) -> Value:
        if isinstance(self.default, bool):
            if text not in {"true", "false"}:
                raise PlanError(f"{self.name}={text}: must be true or false")
            return text == "true"
        if isinstance(self.default, str):
            return text
        try:
            return whole_number(text) if isinstance(self.default, int) else number(text)
        except ValueError:
            kind = "a whole number" if isinstance(self.default, int) else "a number"
            raise PlanError(f"{self.name}={text}: must be {kind} {f'({self.unit})' if self.unit else ''}") from None


class Plan(msgspec.Struct, frozen=True):
    """What to run. `rules`: the rule set that nodes follow. `implementation`: one of IMPLEMENTATIONS. `parameters` has
    every setting of the scenario with its value."""

    scenario: str
    world: str
    rules: str
    seed: int
    control: bool
    parameters: dict[str, Value]
    plant: str | None = None
    changed: tuple[str, ...] = ()  # names of parameters that differ from their defaults
    implementation: str = OURS

    def number(self, name: str) -> int:
        """A whole-number parameter. Raises PlanError if the scenario has none of that name."""
        value = self.parameters.get(name)
        if not isinstance(value, int):
            raise PlanError(f"scenario {self.scenario} has no whole-number parameter {name}")
        return value

    @property
    def has_real_nodes(self) -> bool:
        """Whether nodes take part that are not ours; in the simulator, their stand-ins."""
        return self.implementation != OURS

    @property
    def kind_of_nodes(self) -> str:
        """What takes part, as the options of the commands name it: members or brokers."""
        return "members" if "members" in self.parameters else "brokers"

    def is_real(self, actor: str) -> bool:
        """Whether the node m1, m2, … is not ours."""
        if self.implementation != MIXED:
            return self.implementation == REAL
        return (int(actor.removeprefix("m")) + self.seed) % 2 == 1

    @property
    def variant(self) -> str:
        """As in `history.files.Trial`."""
        return self.implementation if self.has_real_nodes else self.rules

    @property
    def operations(self) -> Operations:
        """Whether each ZooKeeper operation is recorded, or only the number of each kind."""
        ops = self.text("ops")
        if ops == "auto":
            members = self.parameters.get("members", 0)
            return "counts" if isinstance(members, int) and members > MANY_MEMBERS else "all"
        return "all" if ops == "all" else "counts"

    def switch(self, name: str) -> bool:
        """A parameter that is on or off. Raises PlanError if the scenario has none of that name."""
        value = self.parameters.get(name)
        if not isinstance(value, bool):
            raise PlanError(f"scenario {self.scenario} has no switch {name}")
        return value

    def text(self, name: str) -> str:
        """A parameter as text. Raises PlanError if the scenario has none of that name."""
        if name not in self.parameters:
            raise PlanError(f"scenario {self.scenario} has no parameter {name}")
        return str(self.parameters[name])

    @property
    def trial_id(self) -> str:
        """The folder's name, the same for the same plan (live trials add their start time)."""
        parts = [self.scenario, self.world, self.variant, f"s{self.seed}"]
        if self.control:
            parts.append("control")
        if self.plant:
            parts.append(self.plant)
        if self.changed:
            text = ",".join(f"{name}={self.parameters[name]}" for name in self.changed)
            parts.append(hashlib.sha256(text.encode()).hexdigest()[:8])
        return "-".join(parts)


#: The command that lists the checks.
LISTING_CHECKS = "rebalance-lab checks"


def command_listing(scenario: str = "") -> str:
    """The command that lists the scenarios, or the settings of one."""
    return f"rebalance-lab scenarios {scenario}".rstrip()


def command_listing_plants(scenario: str) -> str:
    """The command that lists the planted bugs of a scenario."""
    return f"{command_listing(scenario)} --plants"


def run_command(plan: Plan, store: Path | None = None) -> str:
    """The command that runs a plan, with the default store if `store` is None."""
    words = ["rebalance-lab", "run", plan.scenario, "--world", plan.world]
    words += [f"--{plan.kind_of_nodes}" if plan.has_real_nodes else "--rules", plan.variant]
    words += ["--seed", str(plan.seed)] + (["--control"] if plan.control else [])
    settings = {name: value_text(plan.parameters[name]) for name in plan.changed}
    if plan.plant:
        settings["plant"] = plan.plant
    for name, text in settings.items():
        words += ["--set", f"{name}={text}"]
    return shlex.join([*words, *([] if store is None else ["--store", str(store)])])


def value_text(value: Value) -> str:
    """A value as it is typed. `Parameter.parse` reads it back."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of a scenario by name, in their order on the page."""

    parameters: tuple[Parameter, ...]
    by_name: dict[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {each.name: each for each in self.parameters})

    def values(
        self, scenario: str, given: Mapping[str, Value], *, stored: bool = False
    ) -> tuple[dict[str, Value], tuple[str, ...]]:
        """All values, and the names that differ from their defaults. `stored`: see `parse`. Raises PlanError."""
        unknown = sorted(set(given) - set(self.by_name))
        if unknown:
            known = (*self.by_name, "plant")
            fault = f"scenario {scenario} has no parameter {unknown[0]}"
            raise PlanError(missing(fault, unknown[0], known, has="it has", all_by=command_listing(scenario)))
        values = {
            each.name: each.parse(given[each.name], stored=stored) if each.name in given else each.default
            for each in self.parameters
        }
        changed = tuple(each.name for each in self.parameters if values[each.name] != each.default)
        return values, changed


#: Settings of the world in which a trial runs, by name: they mean the same for every subject.
WORLD_PARAMETERS = {
    each.name: each
    for each in (
        Parameter("servers", 1, "servers", "ZooKeeper servers: 1, or an ensemble of 3 or 5", 1),
        Parameter("session_timeout_ms", 2000, "ms", "zookeeper.session.timeout.ms", 1),
        Parameter("tick_ms", 500, "ms", "the server's tickTime", 10),
        Parameter("rest_timeout_ms", 30_000, "ms", "how long the runner waits until all nodes are at rest", 1),
        Parameter(
            "ops",
            "auto",
            "",
            "ZooKeeper operations in the history; auto only counts them above 100 members",
            choices=OPS,
        ),
        Parameter("latency_min_us", 200, "µs", "simulated: shortest latency between node and server, one way", 0),
        Parameter("latency_max_us", 2000, "µs", "simulated: longest latency between node and server, one way", 0),
        Parameter("start_min_us", 250_000, "µs", "simulated: shortest time to start a node's process", 0),
        Parameter("start_max_us", 550_000, "µs", "simulated: longest time to start a node's process", 0),
    )
}
