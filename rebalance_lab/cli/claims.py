"""`claims`: the ledger, with what the trials of a store say of each claim."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.markup import escape

from rebalance_lab.analysis.claims import GRAVITY, by_construction, claims_json
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.cli.analysing import analysed
from rebalance_lab.cli.failures import exit_code
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from rebalance_lab.cli.terminal import answer, print_json, styled

NOT_RUN = "not run"


def claims(*, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Judge every claim by the trials of a store; surprises come first."""
    analysis = analysed(store)
    if as_json:
        print_json(claims_json(analysis))
    else:
        show(analysis.verdicts)
    raise typer.Exit(exit_code([verdict.status for verdict in analysis.verdicts]))


def seen(verdict: Verdict, world: str) -> str:
    """How many of a world's decided trials show the claim, with the interval: `8 of 8 (68–100 %)`."""
    found = next((each for each in verdict.frequencies if each.world == world), None)
    if found is None or found.low is None or found.high is None:
        return ""
    return f"{found.shown} of {found.decided} ({100 * found.low:.0f}–{100 * found.high:.0f} %)"


def show(verdicts: Sequence[Verdict]) -> None:
    """Each claim that was tested with its readings, surprises before all; the others by name."""
    tested = sorted(
        (verdict for verdict in verdicts if verdict.status != NOT_RUN),
        key=lambda verdict: GRAVITY.index(verdict.status),  # stable: within a status as the ledger has them
    )
    console = answer()
    if tested:
        console.print("Of the trials that decide a reading, how many show it, with the 95 % interval of that share:")
    else:
        console.print("Nothing was tested: the store holds no trial that a claim asks for.")
    if note := by_construction(tested):
        console.print(escape(note))
    claim = None
    for verdict in tested:
        if verdict.claim != claim:
            claim = verdict.claim
            console.print(f"\n[bold]{claim}[/] {escape(verdict.statement)}")
        for line in reading_lines(verdict):
            console.print(f"  {line}", soft_wrap=True)
    waiting = _not_run(verdicts)
    if waiting:
        console.print(f"\nNot run: {', '.join(waiting)} (why: rebalance-lab claims --json)")


def reading_lines(verdict: Verdict) -> list[str]:
    """A reading: what came out of it, from how many trials, and how to see it; why, where it did
    not come out as expected."""
    counts = [f"{world} {seen(verdict, world)}" for world in ("live", "simulated") if seen(verdict, world)]
    came_out = dict.fromkeys((verdict.verdict, verdict.status))  # both may be "unknown"
    said = [f"{escape(verdict.reading)}: {', '.join(styled(each) for each in came_out)}", *counts]
    lines = ["; ".join(said)]
    if verdict.status != "as expected":
        lines.append(f"  expected: {verdict.expected}. {escape(verdict.why)}")
    if verdict.replay:
        lines.append(f"  {escape(verdict.replay)}")
    return lines


def _not_run(verdicts: Sequence[Verdict]) -> list[str]:
    """Claims of which no reading was run; and single readings of others."""
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
