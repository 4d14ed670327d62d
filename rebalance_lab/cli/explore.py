"""`explore`: all schedules of a small replicated partition, and the shortest one that breaks a promise."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.cli.exit_codes import AS_EXPECTED, SURPRISE
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.terminal import print_json, progress, say
from rebalance_lab.explore.model import Bounds, Partition
from rebalance_lab.explore.plants import RuleBug, planted
from rebalance_lab.explore.properties import Property
from rebalance_lab.explore.search import MOST_STATES, Ending, Exploration, explore
from rebalance_lab.explore.story import Story
from rebalance_lab.report.text import listed

_MEANINGS = {
    Property.COMMITTED: "no committed record is lost",
    Property.AGREEMENT: "logs agree below their high watermarks",
    Property.STRONG_ISR: "the true in-sync set has what consumers can read",
    Property.WEAK_ISR: "the in-sync set that a leader assumes has what consumers can read",
}

LateFetches = Annotated[
    bool, typer.Option("--late-fetches", help="A fetch may arrive after its sender's role has changed.")
]
LateAnswers = Annotated[
    bool, typer.Option("--late-answers", help="Answers to followers are steps of their own: the same logs, slower.")
]
Forgets = Annotated[
    bool,
    typer.Option(
        "--forget-followers/--keep-followers",
        help="What a leader knows of its followers after it has missed a leader epoch: nothing, or what it knew "
        "before, as in the broker and in Kafka.",
    ),
]


Rules = Annotated[
    ReplicationRules,
    typer.Option(metavar="RULES", help=f"By which rules the replicas agree: {listed(list(ReplicationRules))}."),
]
Bug = Annotated[RuleBug | None, typer.Option("--plant", metavar="BUG", help="Break a rule of KIP-320; see above.")]


def explore_schedules(
    rules: Rules = ReplicationRules.KIP_320,
    brokers: Annotated[int, typer.Option(min=2, max=4, help="Replicas of the partition.")] = 3,
    records: Annotated[int, typer.Option(min=1, max=9, help="Records that producers write, over all leaders.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, max=9, help="Leader epochs, with the first.")] = 3,
    crashes: Annotated[int, typer.Option(min=0, max=9, help="Crashes of brokers, which keep their logs.")] = 0,
    power_losses: Annotated[
        int, typer.Option(min=0, max=9, help="Losses of power: any part of the end of a log is gone.")
    ] = 0,
    late_fetches: LateFetches = False,
    late_answers: LateAnswers = False,
    wanted: Annotated[
        list[Property] | None,
        typer.Option(
            "--property",
            metavar="PROPERTY",
            help=f"What must hold: {listed(list(Property))}. It may be repeated. Default: committed.",
        ),
    ] = None,
    forgets: Forgets = False,
    bug: Bug = None,
    whole: Annotated[bool, typer.Option("--whole", help="Count all states, also after a counterexample.")] = False,
    most_states: Annotated[
        int, typer.Option(min=1, max=MOST_STATES, help="Give up after this number of states.")
    ] = MOST_STATES,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Try all schedules of a replicated partition, within bounds.

    Prints the shortest schedule in which a committed record is lost.
    Exit 1: the rules should keep a promise that is broken, or a planted bug
    was not found. Exit 2: there are more states than allowed.

    Bugs for --plant: joins-early, counts-old-fetches, cuts-at-leader-end,
    counts-diverging-fetches, ignores-proposed, unfenced-isr and
    elects-out-of-sync.
    """
    late = {"late_fetches": late_fetches, "late_answers": late_answers}
    bounds = Bounds(brokers=brokers, records=records, epochs=epochs, crashes=crashes, power_losses=power_losses, **late)
    partition = Partition(rules, bounds, forgets_if_missed=forgets, **planted(bug))
    properties = tuple(wanted or [Property.COMMITTED])
    with progress().status("searching"):
        found = explore(partition, properties, whole=whole, most_states=most_states)
    if as_json:
        print_json(_as_json(rules, partition, properties, found))
    else:
        _print(
            rules, partition, properties, found, hint=rules is ReplicationRules.KIP_320 and not forgets and bug is None
        )
    if found.ending is Ending.LIMIT:
        raise Failure(f"there are more than {most_states:,} states; lower the bounds, or raise --most-states")
    keeps = rules is ReplicationRules.KIP_320 and forgets and power_losses == 0 and bug is None
    as_expected = not found.counterexamples if keeps else bug is None or bool(found.counterexamples)
    raise typer.Exit(AS_EXPECTED if as_expected else SURPRISE)


def _print(
    rules: ReplicationRules, partition: Partition, wanted: tuple[Property, ...], found: Exploration, *, hint: bool
) -> None:
    bounds = partition.bounds
    say(
        f"{rules}: {bounds.brokers} replicas, {_count(bounds.records, 'record')}, "
        f"{_count(bounds.epochs, 'leader epoch')}{_count(bounds.crashes, 'crash', ', ', 'es')}"
        f"{_count(bounds.power_losses, 'loss', ', ', 'es')}{' of power' * bool(bounds.power_losses)}. "
        f"{found.states:,} states and {found.transitions:,} transitions searched"
        f"{'' if found.ending is Ending.EXHAUSTED else ', until the search ended'}.",
        markup=False,
    )
    for each in wanted:
        example = found.counterexamples.get(each)
        say("")
        if example is None:
            holds = "holds in all of them" if found.ending is Ending.EXHAUSTED else "is not violated so far"
            say(f"{each} ({_MEANINGS[each]}): {holds}.", markup=False)
            continue
        say(f"{each} ({_MEANINGS[each]}): violated after {_count(len(example.steps), 'step')}.", markup=False)
        say("")
        _print_story(Story(partition, example), each)
    if hint and found.counterexamples:
        say("")
        say("--forget-followers shows what remains if leaders that have missed an epoch do not trust what they knew.")


def _count(number: int, what: str, before: str = "", ending: str = "s") -> str:
    """A number with its noun; nothing for 0."""
    return f"{before}{number} {what}{ending * (number != 1)}" * bool(number)


def _print_story(story: Story, broken: Property) -> None:
    say(story.beginning(), lead="    ", markup=False)
    for number, (sentence, changes) in enumerate(story.steps(), 1):
        say(sentence, lead=f"{number:>2}. ", markup=False)
        for line in changes:
            print(f"      {line}")
    say(story.end(broken), lead="So: ", markup=False)


def _as_json(
    rules: ReplicationRules, partition: Partition, wanted: tuple[Property, ...], found: Exploration
) -> dict[str, Any]:
    properties = {}
    for each in wanted:
        example = found.counterexamples.get(each)
        properties[each.value] = None if example is None else _story_as_json(Story(partition, example), each)
    return {
        "rules": rules.value,
        "bounds": partition.bounds,
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "ending": found.ending.value,
        "counterexamples": properties,
    }


def _story_as_json(story: Story, broken: Property) -> dict[str, Any]:
    steps = [{"step": sentence, "state": changes} for sentence, changes in story.steps()]
    return {"beginning": story.beginning(), "steps": steps, "end": story.end(broken)}
