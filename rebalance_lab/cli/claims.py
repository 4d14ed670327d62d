"""`claims`: the ledger, with what the trials of a store say of each claim."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.markup import escape

from rebalance_lab.analysis.claims import GRAVITY, claims_json
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.cli.analysing import analysed
from rebalance_lab.cli.failures import exit_code
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from rebalance_lab.cli.terminal import answer, print_json, styled, table

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
    """The readings that were tested as a table, surprises before all; the others by name."""
    tested = sorted(
        (verdict for verdict in verdicts if verdict.status != NOT_RUN),
        key=lambda verdict: GRAVITY.index(verdict.status),  # stable: within a status as the ledger has them
    )
    rows = [
        (
            verdict.claim,
            escape(verdict.statement),
            verdict.reading,
            verdict.expected,
            styled(verdict.verdict),
            styled(verdict.status),
            seen(verdict, "live"),
            seen(verdict, "simulated"),
            escape(verdict.why),
        )
        for verdict in tested
    ]
    console = answer()
    if rows:
        console.print("In live and simulated trials: how many of those that decide it show the claim (95 % interval)")
        columns = ("claim", "statement", "reading", "expected", "verdict", "status", "live", "simulated", "why")
        console.print(table("Claims that were put to the test", columns, rows, numbers=("live", "simulated")))
    for verdict in tested:
        if verdict.replay:
            console.print(f"{verdict.claim}, {verdict.reading}: {verdict.replay}", soft_wrap=True, markup=False)
    if not tested:
        console.print("Nothing was tested: the store holds no trial that a claim asks for.")
    waiting = dict.fromkeys(verdict.claim for verdict in verdicts if verdict.status == NOT_RUN)
    if waiting:
        console.print(f"Not run: {', '.join(waiting)} (why: rebalance-lab claims --json)")
