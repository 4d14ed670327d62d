"""`demo`: the zombie and the crash, live and simulated, and what Spark makes of them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import typer
from rich.progress import Progress

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.cli.analysing import analysed
from rebalance_lab.cli.claims import NOT_RUN, show
from rebalance_lab.cli.failures import Failure, exit_code, spoken, writable_store
from rebalance_lab.cli.options import DEFAULT_STORE, StoreOption
from rebalance_lab.cli.terminal import answer, progress
from rebalance_lab.history.checks.model import Outcome
from rebalance_lab.report import shown_trials, write
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

#: Claims the demo puts to the test.
CLAIMS = ("Z10", "Z1")

#: Live trials at a time. Members wait most of the time: for sessions, back-offs, the pause.
LIVE_PROCESSES = 3

SIMULATED_PROCESSES = 2


@dataclass(slots=True)
class Demo:
    """What the steps share."""

    store: Path
    statuses: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """`says`: the line that people read before it is done."""

    says: str
    do: Callable[[Demo], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials of a scenario, seeds 1 to `seeds`."""

    scenario: str
    seeds: int
    control: bool = False

    def plans(self, world: str) -> list[Plan]:
        seeds = range(1, self.seeds + 1)
        return [api.make_plan(self.scenario, world=world, seed=seed, control=self.control) for seed in seeds]


def trials(world: str, *batches: Batch) -> Callable[[Demo], None]:
    """A step that runs trials of one world, side by side, into the demo's store."""

    def do(demo: Demo) -> None:
        plans = [plan for batch in batches for plan in batch.plans(world)]
        processes = SIMULATED_PROCESSES if world == "simulated" else LIVE_PROCESSES
        console = progress()
        with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
            task = bar.add_task(f"{len(plans)} trials", total=len(plans))
            for _ in api.sweep(plans, demo.store, processes):
                bar.advance(task)

    return do


def verdicts(demo: Demo) -> None:
    """Spark judges the store; the page is written; table and overlaps are printed."""
    analysis = analysed(demo.store, shown_trials)
    page = write(analysis, demo.store, demo.store / "report.html")
    readings = [verdict for verdict in analysis.verdicts if verdict.claim in CLAIMS]
    show(readings)
    for line in overlaps(analysis, demo.store):
        answer().print(line, soft_wrap=True, markup=False)
    answer().print(f"\nThe picture: {page.resolve()}", soft_wrap=True, markup=False)
    if shutil.which("rebalance-lab") is None:
        activate = shlex.quote(str(Path(sys.executable).with_name("activate")))
        answer().print(f"To have the command rebalance-lab: source {activate}", soft_wrap=True, markup=False)
    demo.statuses = [reading.status for reading in readings]


def overlaps(analysis: Analysis, store: Path) -> list[str]:
    """For the first zombie of each world: who owned what together, how long, and how to see it
    again."""
    lines = []
    zombies = [each for each in analysis.trials if each.scenario == "zombie" and not each.control and not each.plant]
    for world in sorted({trial.world for trial in zombies}):
        trial = min((each for each in zombies if each.world == world), key=lambda each: (each.seed, each.id))
        lines.append(f"\nTwo owners, {world}: {api.replay_command(store / trial.id)}")
        for outcome in analysis.outcomes:
            if outcome.trial == trial.id and outcome.outcome == Outcome.VIOLATED:
                witness = ", ".join(f"{actor}#{number}" for actor, number in outcome.witness)
                lines.append(f"  {outcome.check}: {outcome.why} (events {witness})")
    return lines


STEPS: tuple[Step, ...] = (
    Step(
        "Live: a real member is stopped past its ZooKeeper session, and wakes. Five more are killed. With controls.",
        trials(
            "processes",
            Batch("zombie", 1),
            Batch("zombie", 1, control=True),
            Batch("crash", 5),
            Batch("crash", 1, control=True),
        ),
    ),
    Step(
        "Simulated: 200 zombies and 200 crashes in virtual time, and 20 controls of each.",
        trials(
            "simulated",
            Batch("zombie", 200),
            Batch("zombie", 20, control=True),
            Batch("crash", 200),
            Batch("crash", 20, control=True),
        ),
    ),
    Step("Spark turns the recordings into verdicts.", verdicts),
)


def demo(*, store: StoreOption = DEFAULT_STORE) -> None:
    """Watch two owners of one partition: live, simulated, and judged."""
    state = Demo(writable_store(store))
    console = answer()
    with spoken():
        for number, step in enumerate(STEPS, 1):
            console.print(f"[bold]{number}/{len(STEPS)}[/] {step.says}")
            step.do(state)
    if NOT_RUN in state.statuses:
        raise Failure("a claim of the demo was not put to the test")
    raise typer.Exit(exit_code(state.statuses))
