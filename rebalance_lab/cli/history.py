"""`history`: read and compare recorded trials in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.text import Text

from rebalance_lab.analysis.results import of_trial, trial_facts
from rebalance_lab.cli.events import (
    AROUND,
    FAULT_MARK,
    RUNNER_MARK,
    Lines,
    Wanted,
    around_of,
    members_of,
    place_of,
    words_of,
)
from rebalance_lab.cli.exit_codes import AS_EXPECTED, SURPRISE
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption, TrialArgument, trial_folder
from rebalance_lab.cli.terminal import answer, note, print_json
from rebalance_lab.history.compare import Difference, first_difference
from rebalance_lab.history.events import LAYER_OF, Event, Layer, encode
from rebalance_lab.history.files import History, Trial, load

history = typer.Typer(name="history", help="Read recorded trials, event by event.", no_args_is_help=True)

#: Colours of layers on a terminal. Operations, which are the most frequent, have none.
STYLES = {Layer.FAULT: "bold red", Layer.BELIEF: "green", Layer.REGISTRY: "cyan", Layer.EFFECT: "dim"}

_Texts = list[str] | None

#: 285 years: no trial lasts so long, and such a time in microseconds is exact.
LATEST_MS = 9e12

#: More than a terminal keeps.
MOST_SHOWN = 1_000_000


@history.command()
def show(
    trial: TrialArgument,
    *,
    layer: Annotated[_Texts, typer.Option(help="Layers: belief, registry, effect, fault, op.", metavar="A,B")] = None,
    actor: Annotated[_Texts, typer.Option(help="Who recorded the event: m1, runner, zookeeper.", metavar="A,B")] = None,
    kind: Annotated[_Texts, typer.Option(help="Kinds of events: owned, watch-fired, leads, …", metavar="A,B")] = None,
    partition: Annotated[
        str | None, typer.Option(help="Events of this partition, with phases and faults.", metavar="T/N")
    ] = None,
    from_ms: Annotated[
        float | None, typer.Option(help="Events from this time on.", metavar="MS", min=0, max=LATEST_MS)
    ] = None,
    to_ms: Annotated[
        float | None, typer.Option(help="Events up to this time.", metavar="MS", min=0, max=LATEST_MS)
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(help=f"This event, and COUNT (default {AROUND}) before and after it.", metavar="ID[:COUNT]"),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print a trial's events, one per line, in the order of the history.

    A line has the time in ms since the first event, the event's id, its layer,
    its kind, details, and the id of the event that caused it. !! marks faults,
    == marks the phases of the trial, >> marks the event that --around names.

    An event is shown if it passes all filters. A consumer id is shown as
    {actor}. --json prints every field, one event per line.
    """
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise Failure(f"--from-ms {from_ms:g} is after --to-ms {to_ms:g}: there is nothing in between")
    chosen, count = (None, AROUND) if around is None else around_of(around)
    wanted = Wanted(
        layers=members_of("--layer", Layer, layer),
        actors=words_of("--actor", actor),
        kinds=members_of("--kind", LAYER_OF, kind),
        place=None if partition is None else place_of(partition),
        from_us=None if from_ms is None else round(from_ms * 1000),
        to_us=None if to_ms is None else round(to_ms * 1000),
        around=chosen,
        count=count,
    )
    found = load(trial_folder(trial, store))
    shown = wanted.of(found.events)
    if as_json:
        for event in shown:
            print(encode(event).decode())
        return
    head(found.trial)
    lines = Lines.of(found.events, shown)
    put((lines.line(event, chosen), event) for event in shown)
    note(f"{len(shown)} of {len(found.events)} events")


@history.command()
def compare(
    left: Annotated[str, typer.Argument(help="A trial's folder, or its name in the store.", metavar="A")],
    right: Annotated[str, typer.Argument(help="Another trial.", metavar="B")],
    *,
    context: Annotated[
        int,
        typer.Option("--context", help="Events shown before and after the difference.", min=0, max=MOST_SHOWN),
    ] = 5,
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Find the first event in which two histories differ.

    Exit 0: they are the same. 1: they differ.
    """
    ours, theirs = (load(trial_folder(each, store)) for each in (left, right))
    found = first_difference(ours.events, theirs.events)
    if as_json:
        print_json(_shape(ours, theirs, found))
    else:
        _tell(ours, theirs, found, context)
    raise typer.Exit(AS_EXPECTED if found is None else SURPRISE)


def title(trial: Trial) -> str:
    """`zombie · simulated · described · seed 3 · control`."""
    facts = [trial.scenario, trial.world, trial.variant, f"seed {trial.seed}"]
    facts += ["control"] if trial.control else []
    facts += [f"planted bug {trial.plant}"] if trial.plant else []
    return " · ".join(facts)


def head(trial: Trial) -> None:
    """Print which trial the lines that follow are of."""
    note(trial.id)
    note(title(trial))


def put(lines: Iterable[tuple[str, Event]]) -> None:
    """Print lines of events: coloured and cut at its edge on a terminal, whole in a pipe."""
    if not sys.stdout.isatty():
        for line, _ in lines:
            print(line)
        return
    console = answer()
    for line, event in lines:
        style = STYLES.get(event.layer, "bold" if line.startswith((RUNNER_MARK, FAULT_MARK)) else "")
        console.print(Text(line, style), no_wrap=True, overflow="ellipsis")


# -- comparing ------------------------------------------------------------------------------


def _shape(ours: History, theirs: History, found: Difference | None) -> dict[str, object]:
    shape: dict[str, object] = {"same": found is None, "a": ours.trial.id, "b": theirs.trial.id}
    if found is None:
        return shape | {"events": len(ours.events)}
    sides = {"a_event": found.left, "b_event": found.right}
    return shape | {"event": found.index + 1, "fields": found.fields} | sides


def _tell(ours: History, theirs: History, found: Difference | None, context: int) -> None:
    for name, each in (("A", ours), ("B", theirs)):
        note(f"{name}: {each.trial.id}, {len(each.events)} events")
    unlike = _unlike(ours.trial, theirs.trial)
    if unlike:
        note(f"not the same experiment: {unlike}")
    if found is None:
        print(f"the same history, event for event: {len(ours.events)} events")
        return
    shared = ours.events[max(found.index - context, 0) : found.index]
    sides = [each.events[found.index : found.index + 1 + context] for each in (ours, theirs)]
    rows = [*shared, *sides[0], *sides[1]]  # of both, so that their columns are the same
    lines = Lines.of(ours.events, rows)
    put((f"   {lines.line(event)}", event) for event in shared)
    for name, each, side, differs in zip("AB", (ours, theirs), sides, (found.left, found.right), strict=True):
        lines = Lines.of(each.events, rows)
        chosen = None if differs is None else differs.id
        put((f"{name}  {lines.line(event, chosen)}", event) for event in side)
        if differs is None:
            print(f"{name}  (ended)")
    what = f" in: {', '.join(found.fields)}" if found.fields else ""
    note(f"the same up to event {found.index}; event {found.index + 1} differs{what}")


def _unlike(left: Trial, right: Trial) -> str:
    """The settings in which two trials differ; empty if the experiments are the same."""
    ours, theirs = (trial_facts(trial) for trial in (left, right))
    names = [*of_trial(left), *sorted(left.parameters.keys() | right.parameters.keys())]
    pairs = [(name, ours.get(name), theirs.get(name)) for name in names if name != "trial"]
    return ", ".join(f"{name} {one} and {other}" for name, one, other in pairs if one != other)
