"""What a trial is about: one declaration for each kind of system that the lab studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rebalance_lab.checks import CHECKS, Check, register
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval, register_holdings
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.history.rest import NodeTracker, StateTracker
from rebalance_lab.kernel import Kernel
from rebalance_lab.roles.spec import NodeSpec
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.plan import IMPLEMENTATIONS, OURS, REAL, Plan, PlanError, one_of
from rebalance_lab.trials.stage import Stage
from rebalance_lab.trials.stages.processes.nodes import EventSource, NodeProcess
from rebalance_lab.world.kafka.jars import Role as KafkaRole


class Outsiders(Protocol):
    """Nodes that are not ours, in one live trial, and what they need."""

    async def start_brokers(self, count: int, connect: str) -> bool:
        """Start brokers if the trial's nodes need them. Returns False if znodes are enough."""
        ...

    def start(
        self, spec: NodeSpec, *, wall_offset_us: int, poll_registry: Callable[[], None]
    ) -> tuple[NodeProcess, EventSource] | None:
        """Start a node that is such a program; None if it is one of ours. Raises TrialError."""
        ...

    def feed(self, event: Event) -> None:
        """Process an event of the registry."""
        ...

    def check(self) -> None:
        """Raise TrialError if one of them has ended."""
        ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RealNodes:
    """The original program whose nodes may take part in a subject's trials in place of ours, or beside ours.

    `rules`: the rule set that describes it; ours follow it beside them. `settings`: settings of a trial with such nodes
    that have another value, unless they are given. `take_part`: makes them ready for a live trial in a folder. `name`:
    what they are, as the commands' option names them. `roles`: the programs that run. `mixed`: whether they take part
    beside ours, too.
    """

    rules: str
    settings: Mapping[str, str]
    take_part: Callable[[Plan, Path, Kernel], Outsiders]
    name: str
    roles: tuple[KafkaRole, ...]
    mixed: bool

    @property
    def implementations(self) -> tuple[str, ...]:
        """Whose nodes may take part."""
        return IMPLEMENTATIONS if self.mixed else (OURS, REAL)


def _no_demands(_plan: Plan) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One kind of system.

    - `name`: as stored trials name it (`Trial.subject`), and checks in `applies_to`.
    - `rules`: the rule sets that its plans may name; the first is the default.
    - `lab`: the interface for its scripts. `tracker`: when its nodes are at rest.
    - `demands`: raises PlanError for a plan that cannot be carried out.
    - `real`: the original program, if its nodes may take part; None: all nodes are ours.
    - `plants`: the bugs that its trials may plant, beside those of the faults.
    - `checks`: those of its checks that `rebalance_lab.checks` does not hold.
    - `holdings`: who held what, and when: the rows of its trials' pictures. None: those of the module `holdings` of its
      package, or else the partitions that members own.
    - `words`: the file of its words in reports (`report/words.toml` explains it); None: those of any subject.
    - `narrator`: the module whose NARRATOR says what needs more than words (`report/narrator.py`). Reports import it.
    """

    name: str
    rules: tuple[str, ...]
    lab: Callable[[Stage], Lab[Any, Any]]
    tracker: Callable[[], StateTracker[Any]] = NodeTracker
    demands: Callable[[Plan], None] = _no_demands
    real: RealNodes | None = None
    plants: tuple[type[PlantedBug], ...] = ()
    checks: tuple[Check, ...] = ()
    holdings: Callable[[History], Iterable[Interval]] | None = None
    words: Path | None = None
    narrator: str | None = None

    def rules_with(self, implementation: str, rules: str | None) -> str:
        """The rule set of a plan that names one or none. Raises PlanError for what this subject does not have."""
        known = (OURS,) if self.real is None else self.real.implementations
        one_of(f"kind of {'nodes' if self.real is None else self.real.name}", implementation, known)
        if rules is not None:
            one_of("rule set", rules, self.rules)
        if self.real is None or implementation == OURS:
            return rules or self.rules[0]
        if rules not in {None, self.real.rules}:
            raise PlanError(
                f"--rules {rules} is not what real {self.real.name} follow; leave it out with --{self.real.name} "
                f"{implementation}"
            )
        return self.real.rules

    def declare(self) -> None:
        """Make its checks and rows known to all that judge and draw trials in this process. Again: nothing happens.
        Raises ValueError if another check has the name of one of its own."""
        for check in self.checks:
            if CHECKS.get(check.name) is not check:
                register(check)
        if self.holdings is not None:
            register_holdings(self.name, self.holdings)
