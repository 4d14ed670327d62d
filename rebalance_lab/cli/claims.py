"""`claims`: the ledger, with the verdicts of the trials of a store."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.markup import escape

from rebalance_lab.analysis.claims import BY_CONSTRUCTION, NOT_RUN, claims_json, counted, sort, statuses
from rebalance_lab.analysis.ledger import Expected
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.cli.analysing import analysed
from rebalance_lab.cli.failures import exit_code
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from rebalance_lab.cli.terminal import answer, print_json, say, styled

HOW_TO_READ = (
    "Each reading has its verdict and status; for each world, how many of the decided trials show it, with the 95 % "
    "interval of that share; and how many trials are undecided (no fault took effect, or a check is unknown or does "
    "not apply)."
)


def claims(*, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Judge every claim by the trials of a store; surprises come first."""
    analysis = analysed(store)
    if as_json:
        print_json(claims_json(analysis))
    else:
        show(analysis.verdicts)
    raise typer.Exit(exit_code(statuses(analysis.verdicts)))


def seen(verdict: Verdict, world: str) -> str:
    """How many of a world's decided trials show the claim, with the interval, and how many were undecided: `8 of 8
    (68–100 %), 2 undecided`. Empty if the world has no trials."""
    found = next((each for each in verdict.frequencies if each.world == world), None)
    if found is None or not found.decided + found.undecided:
        return ""
    told = f"{found.shown} of {found.decided}"
    if found.low is not None and found.high is not None:
        told += f" ({100 * found.low:.0f}–{100 * found.high:.0f} %)"
    return f"{told}, {found.undecided} undecided" if found.undecided else told


def show(verdicts: Sequence[Verdict]) -> None:
    """Each tested claim with its readings, surprises first; then readings that hold by construction; then the names
    of those that were not run."""
    found = sort(verdicts)
    if found.tested:
        say(HOW_TO_READ)
    else:
        say("Nothing was tested: the store has no trials that a claim needs.")
    _show_claims(found.tested)
    if found.constructed:
        say(f"\n{BY_CONSTRUCTION}")
        _show_claims(found.constructed)
    if told := counted(verdicts):
        say(f"\n{told}.")
    waiting = _not_run(verdicts)
    if waiting:
        say(f"\nNot run: {escape(', '.join(waiting))} (why: rebalance-lab claims --json)")


def _show_claims(verdicts: Sequence[Verdict]) -> None:
    claim = None
    for verdict in verdicts:
        if verdict.claim != claim:
            claim = verdict.claim
            say("")
            say(escape(verdict.statement), lead=f"[bold]{claim}[/] ")
        _show_reading(verdict)


def _show_reading(verdict: Verdict) -> None:
    """The verdict of a reading, the number of trials, and how to replay one; the reason, if it is not as expected."""
    counts = [f"{world} {seen(verdict, world)}" for world in ("live", "simulated") if seen(verdict, world)]
    if verdict.expected == Expected.DOES_NOT_APPLY and counts:
        counts[0] = f"trials without what the claim is about: {counts[0]}"
    came_out = dict.fromkeys((verdict.verdict, verdict.status))  # both may be one word
    if not verdict.counts:
        came_out = dict.fromkeys((verdict.verdict, "by construction"))
    said = [f"{escape(verdict.reading)}: {', '.join(styled(each) for each in came_out)}", *counts]
    say("; ".join(said), lead="  ")
    if verdict.status not in ("as expected", "does not apply"):
        say(f"expected: {verdict.expected}. {escape(verdict.why)}", lead="    ")
    if verdict.replay:
        answer().print(f"    {verdict.replay}", soft_wrap=True, markup=False)


def _not_run(verdicts: Sequence[Verdict]) -> list[str]:
    """Claims without any reading that was run, and single readings of others."""
    readings: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        readings.setdefault(verdict.claim, []).append(verdict)
    found = []
    for claim, those in readings.items():
        waiting = [each.reading for each in those if each.status == NOT_RUN]
        if len(waiting) == len(those):
            found.append(claim)
        else:
            found += [f"{claim} ({reading})" for reading in waiting]
    return found
