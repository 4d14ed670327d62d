"""`demo`: the watch-driven group as in the articles, and broken in four ways; a partition whose replicas die; live and
simulated, with Spark's verdicts."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from rebalance_lab.analysis.claims import claim_status, sort
from rebalance_lab.analysis.ledger import Status
from rebalance_lab.analysis.results import Analysis
from rebalance_lab.analysis.trialwise.judged import keep_judgement
from rebalance_lab.checks.model import Outcome
from rebalance_lab.cli.claims import analysed
from rebalance_lab.cli.failures import Failure, exit_code
from rebalance_lab.cli.options import DEFAULT_STORE, StoreOption
from rebalance_lab.cli.terminal import progress, say, watched, whole
from rebalance_lab.cli.trial_runs import writable_store
from rebalance_lab.cli.verdict_table import HOW_TO_READ, verdict_lines
from rebalance_lab.history.files import Trial, load, replay_command
from rebalance_lab.report.files import write, write_trial
from rebalance_lab.report.findings import is_statement
from rebalance_lab.report.page import summary
from rebalance_lab.report.selection import STATUS_ORDER, shown_trials
from rebalance_lab.report.text import count, without_ids
from rebalance_lab.report.trial_page import story_of
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

#: The claims that the demo tests.
CLAIMS = ("Z3", "Z5a", "Z6", "Z7a", "Z7b", "Z7c", "Z8", "Z9", "Z10")

BOTH = ("described", "shipped")

#: The scenarios that break the group.
FAILURES = ("split-brain", "uncontrolled", "zombie")

#: Live trials at a time. Members mostly wait: for sessions, back-offs, the pause.
LIVE_PROCESSES = 8

#: Simulated trials run meanwhile, in what the live ones leave of the processors.
SIMULATED_PROCESSES, SIMULATED_NICENESS = 2, 19


@dataclass(slots=True)
class Demo:
    """The state that the steps share."""

    store: Path
    statuses: list[Status] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Step:
    """`says`: the line that is printed before the step."""

    says: str
    do: Callable[[Demo], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials of a scenario, with seeds 1 to `seeds`. `settings`: parameters that differ from the default."""

    scenario: str
    seeds: int
    rules: str = "described"
    control: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`herd, shipped, control, members=4`."""
        settings = [f"{name}={value}" for name, value in self.settings.items()]
        return ", ".join([self.scenario, self.rules, *(["control"] if self.control else []), *settings])

    def plans(self, world: str) -> list[Plan]:
        return [
            api.make_plan(
                self.scenario,
                world=world,
                rules=self.rules,
                seed=seed,
                control=self.control,
                settings=dict(self.settings),
            )
            for seed in range(1, self.seeds + 1)
        ]


def by_rules(scenario: str, rules: str, seeds: int, **settings: str) -> tuple[Batch, ...]:
    """A scenario under one rule set, and one control."""
    return tuple(Batch(scenario, 1 if control else seeds, rules, control, settings) for control in (False, True))


def by_both(scenario: str, seeds: int, **settings: str) -> tuple[Batch, ...]:
    """A scenario under both rule sets, and one control of each."""
    return tuple(batch for rules in BOTH for batch in by_rules(scenario, rules, seeds, **settings))


def trend(seeds: int, *sizes: int, stop_ms: int = 0, control: bool = False) -> tuple[Batch, ...]:
    """The herds of Z7c as shipped, with 64 partitions, so that every member owns one. With fetchers that stop at
    once, claims hardly ever meet."""
    return tuple(
        Batch(
            "herd",
            seeds,
            "shipped",
            control,
            {"members": str(size), "partitions": "64", "fetcher_stop_ms": str(stop_ms)},
        )
        for size in sizes
    )


def by_filter(seeds: int) -> tuple[Batch, ...]:
    """The walk-through of members with a topic filter, and one control."""
    return tuple(
        Batch("walkthrough", 1 if control else seeds, control=control, settings={"filter": "true"})
        for control in (False, True)
    )


def failures(seeds: int, controls: int) -> tuple[Batch, ...]:
    """Every failure under both rule sets, with controls of each."""
    return tuple(
        Batch(scenario, count, rules, control)
        for scenario in FAILURES
        for rules in BOTH
        for count, control in ((seeds, False), (controls, True))
    )


def first_picture(demo: Demo) -> None:
    """Run one simulated zombie, tell its story, and write its page."""
    result = api.run(api.make_plan("zombie"), demo.store, keep_judgement)
    for sentence in story_of(load(result.folder), result.folder):
        say(sentence, lead="  ", markup=False)
    whole(f"  The picture: {write_trial(result.folder)}")


def trials(**batches: Sequence[Batch]) -> Callable[[Demo], None]:
    """A step that runs the batches of each world, side by side, and stores their trials in the demo's store."""

    def do(demo: Demo) -> None:
        for line in finished(batches, _ran(demo, **batches)):
            if not progress().is_terminal:  # a terminal shows a progress bar
                print(line, file=sys.stderr, flush=True)

    return do


def _ran(demo: Demo, **batches: Sequence[Batch]) -> Iterator[Trial]:
    """The trials of the batches of each world, as they end."""
    plans = {world: [plan for batch in its for plan in batch.plans(world)] for world, its in batches.items()}
    ended = watched(
        api.sweep_lanes([_lane(*each) for each in plans.items()], demo.store, keep_judgement),
        sum(map(len, plans.values())),
    )
    return (result.trial for result in ended)


def brokers(demo: Demo) -> None:
    """Run the trials of brokers, and say what happened to the partition, with the commands that repeat it."""
    batches = tuple(BROKERS.values())
    ended = list(_ran(demo, processes=batches, simulated=batches))
    for title, batch in BROKERS.items():
        live, simulated = (_first(ended, batch, world) for world in ("processes", "simulated"))
        assert live is not None and simulated is not None, "each was run"
        say(f"[bold]{title}:[/]", lead="  ")
        for sentence in story_of(load(demo.store / live.id), demo.store / live.id):
            say(sentence, lead="    ", markup=False)
        whole(f"    in the simulator: {replay_command(demo.store / simulated.id)}")


def _lane(world: str, plans: list[Plan]) -> api.Lane:
    if world == "simulated":
        return api.Lane(plans, SIMULATED_PROCESSES, SIMULATED_NICENESS)
    return api.Lane(plans, LIVE_PROCESSES)


def finished(batches: Mapping[str, Sequence[Batch]], ended: Iterable[Trial]) -> Iterator[str]:
    """A line for each batch of each world as soon as its last trial has ended: `simulated herd, shipped, members=4:
    200 trials`."""
    left = {_kind(batch.plans(world)[0]): (batch, batch.seeds) for world, its in batches.items() for batch in its}
    for trial in ended:
        batch, missing = left[_kind(trial)]
        left[_kind(trial)] = (batch, missing - 1)
        if missing == 1:
            yield f"{trial.world} {batch.name}: {count(batch.seeds, 'trial')}"


def _kind(of: Plan | Trial) -> tuple[object, ...]:
    """What the trials of one batch have in common."""
    parameters = sorted((name, str(value)) for name, value in of.parameters.items())
    return (of.world, of.scenario, of.variant, of.control, *parameters)


def verdicts(demo: Demo) -> None:
    """Let Spark judge the store, write the page, and print verdicts and what was found live."""
    analysis = analysed(demo.store, shown_trials)
    page = write(analysis, demo.store, demo.store / "report.html")
    # without those about brokers, which have too few trials here for a verdict
    ours = replace(analysis, verdicts=tuple(each for each in analysis.verdicts if each.claim in CLAIMS))
    found = sort(ours.verdicts, STATUS_ORDER)
    say(HOW_TO_READ, lead="\n")
    for line in verdict_lines(sorted(found.tested, key=ours.verdicts.index)):
        say(line)
    say(f"\n{summary(ours)}", markup=False)
    show_found(analysis, demo.store)
    store = shlex.quote(str(demo.store))
    whole(f"\nEvery claim, also those that were not run: rebalance-lab claims --store {store}")
    whole(f"All of it in pictures: {page.resolve()}")
    if shutil.which("rebalance-lab") is None:
        activate = shlex.quote(str(Path(sys.executable).with_name("activate")))
        whole(f"To have the command rebalance-lab: source {activate}")
    # Real members do not run here, so a claim counts as tested if any of its readings was.
    demo.statuses = [claim_status(each for each in analysis.verdicts if each.claim == claim) for claim in CLAIMS]


def show_found(analysis: Analysis, store: Path) -> None:
    """For each failure: what was found live, and the command that repeats it in the simulator."""
    for scenario in FAILURES:
        batch = Batch(scenario, 1)
        live, simulated = (_first(analysis.trials, batch, world) for world in ("processes", "simulated"))
        if live is None:
            continue
        say(f"\n[bold]{scenario}[/], live:")
        for outcome in analysis.outcomes:
            if outcome.trial == live.id and outcome.outcome == Outcome.VIOLATED and not is_statement(outcome.check):
                say(without_ids(f"{outcome.check}: {outcome.why}"), lead="  ", markup=False)
        if simulated is not None:
            whole(f"  in the simulator: {replay_command(store / simulated.id)}")


def _first(trials: Sequence[Trial], batch: Batch, world: str) -> Trial | None:
    """The first trial of a batch's scenario and settings in a world, without controls and planted bugs."""
    wanted = {name: batch.plans(world)[0].parameters[name] for name in batch.settings}
    found = [
        each
        for each in trials
        if (each.scenario, each.world) == (batch.scenario, world)
        and not each.control
        and not each.plant
        and wanted.items() <= each.parameters.items()
    ]
    return min(found, key=lambda each: (each.seed, each.id), default=None)


#: One trial each, in each world: what happens to a partition whose replicas die.
BROKERS = {
    "A leader dies": Batch("isr-election", 1, "kip-320"),
    "All replicas die, and the partition waits for one in sync": Batch(
        "all-replicas-down", 1, "kip-320", settings={"unclean": "false"}
    ),
    "All replicas die, and the first to return leads": Batch(
        "all-replicas-down", 1, "kip-320", settings={"unclean": "true"}
    ),
}

#: Universal claims need five live trials and 200 simulated ones of each reading; Z7c four live trials and 20 simulated
#: seeds. The herds of Z7c count for the other claims about herds as shipped, and walk-throughs with a filter for those
#: about walk-throughs as described.
LIVE = (
    *failures(1, 1),
    *by_both("walkthrough", 5),
    *by_filter(1),
    *by_rules("herd", "described", 5, members="4"),
    *trend(1, 4, 8, 12, 16, 24, 32),
    *trend(1, 8, stop_ms=100),
    *trend(1, 4, control=True),
)
SIMULATED = (
    *by_both("walkthrough", 200),
    *by_filter(20),
    *by_both("herd", 200, members="4"),
    *(Batch("herd", 3, rules, settings={"members": str(n)}) for n in (8, 16, 32) for rules in BOTH),
    *trend(20, 4),
    *trend(3, 8, 16, 32),
    *trend(3, 4, 8, stop_ms=100),
    *trend(1, 16, 32, stop_ms=100),
    *trend(1, 4, control=True),
    *failures(20, 5),
)

STEPS: tuple[Step, ...] = (
    Step("A zombie, in the simulator: a member is paused for longer than its session lasts.", first_picture),
    Step(
        "Live, on a real ZooKeeper: two views at one moment; a member that uses up its retries; a member that is paused"
        " longer than its session; members that join and leave one by one. By the articles' rules and by Kafka's."
        " Meanwhile the same in virtual time, hundreds of times.",
        trials(processes=LIVE, simulated=SIMULATED),
    ),
    Step("Brokers, live: the leader of a partition dies, and then all its replicas.", brokers),
    Step("Spark computes verdicts from the recordings.", verdicts),
)


def demo(*, store: StoreOption = DEFAULT_STORE) -> None:
    """Watch a group fail in four ways, and brokers die: live, simulated, judged."""
    state = Demo(writable_store(store))
    for number, step in enumerate(STEPS, 1):
        say(step.says, lead=f"[bold]{number}/{len(STEPS)}[/] ")
        step.do(state)
    if Status.NOT_RUN in state.statuses:
        raise Failure("a claim of the demo was not tested")
    raise typer.Exit(exit_code(state.statuses))
