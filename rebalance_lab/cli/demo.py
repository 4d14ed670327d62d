"""`demo`: the zombie and the crash, live and simulated, and what Spark makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import typer

from rebalance_lab.cli.analysing import analysed, by_claim, status_of
from rebalance_lab.cli.claims import show
from rebalance_lab.cli.failures import Failure, exit_code, spoken, writable_store
from rebalance_lab.cli.options import DEFAULT_STORE, StoreOption
from rebalance_lab.cli.terminal import answer, progress
from rebalance_lab.report import write
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

#: Claims the demo puts to the test.
CLAIMS = ("Z10", "Z1")

#: Trials at a time. Live ones keep their timing with both cores of a small machine.
PROCESSES = 2


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


def trials(scenario: str, *, world: str, seeds: int, control: bool = False) -> Callable[[Demo], None]:
    """A step that runs trials of a scenario, seeds 1 to `seeds`, into the demo's store."""

    def do(demo: Demo) -> None:
        plans: list[Plan] = [
            api.make_plan(scenario, world=world, seed=seed, control=control) for seed in range(1, seeds + 1)
        ]
        with progress().status(f"{len(plans)} trials of {scenario}, {world}"):
            for _ in api.sweep(plans, demo.store, PROCESSES):
                pass

    return do


def verdicts(demo: Demo) -> None:
    """Spark judges the store; the page is written; the table is printed."""
    analysis = analysed(demo.store)
    page = write(analysis, demo.store, demo.store / "report.html")
    readings = {claim: each for claim, each in by_claim(analysis.verdicts).items() if claim in CLAIMS}
    show(readings)
    answer().print(f"\nThe picture: {page.resolve()}", soft_wrap=True, markup=False)
    demo.statuses = [status_of(each) for each in readings.values()]


STEPS: tuple[Step, ...] = (
    Step(
        "A zombie: a real member is stopped past its ZooKeeper session, and wakes.",
        trials("zombie", world="processes", seeds=1),
    ),
    Step("Its control: the same without the pause.", trials("zombie", world="processes", seeds=1, control=True)),
    Step("A crash: kill -9, and what ZooKeeper keeps of it.", trials("crash", world="processes", seeds=5)),
    Step("Its control.", trials("crash", world="processes", seeds=1, control=True)),
    Step("200 zombies in virtual time.", trials("zombie", world="simulated", seeds=200)),
    Step("200 crashes in virtual time.", trials("crash", world="simulated", seeds=200)),
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
    if "not run" in state.statuses:
        raise Failure("a claim of the demo was not put to the test")
    raise typer.Exit(exit_code(state.statuses))
