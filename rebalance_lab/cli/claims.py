"""`claims`: the ledger, with what the trials of a store say of each claim."""

from __future__ import annotations

import typer
from rich.markup import escape

from rebalance_lab.analysis.results import Verdict
from rebalance_lab.cli.analysing import GRAVITY, analysed, by_claim, status_of
from rebalance_lab.cli.failures import exit_code
from rebalance_lab.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from rebalance_lab.cli.terminal import answer, print_json, styled, table


def claims(*, store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """Judge every claim by the trials of a store; surprises come first."""
    readings = by_claim(analysed(store).verdicts)
    if as_json:
        print_json(shape(readings))
    else:
        show(readings)
    raise typer.Exit(exit_code([status_of(each) for each in readings.values()]))


def shape(readings: dict[str, list[Verdict]]) -> dict[str, object]:
    """The JSON of `claims --json`."""
    return {
        claim: {"status": status_of(each), "readings": {reading.reading: _reading(reading) for reading in each}}
        for claim, each in readings.items()
    }


def _reading(reading: Verdict) -> dict[str, object]:
    return {
        "expected": reading.expected,
        "verdict": reading.verdict,
        "status": reading.status,
        "trials": reading.live + reading.simulated,
        "live": reading.live,
        "simulated": reading.simulated,
        "witness": reading.witness,
        "replay": reading.replay,
        "why": reading.why,
    }


def show(readings: dict[str, list[Verdict]], title: str = "Claims") -> None:
    """The claims as a table: first what was tested, surprises before all; then the rest by name."""
    tested = [each for each in readings.values() if status_of(each) != "not run"]
    ordered = sorted(tested, key=lambda each: GRAVITY.index(status_of(each)))
    rows = [
        (
            reading.claim if number == 0 else "",
            escape(reading.statement) if number == 0 else "",
            reading.reading,
            reading.expected,
            styled(reading.verdict),
            styled(reading.status),
            str(reading.live),
            str(reading.simulated),
            escape(reading.why),
        )
        for each in ordered
        for number, reading in enumerate(each)
    ]
    console = answer()
    columns = ("claim", "statement", "reading", "expected", "verdict", "status", "live", "simulated", "why")
    if rows:
        console.print(table(title, columns, rows, numbers=("live", "simulated")))
    for each in ordered:
        for reading in each:
            if reading.replay:
                console.print(f"{reading.claim} ({reading.reading}): {reading.replay}", soft_wrap=True, markup=False)
    waiting = [claim for claim, each in readings.items() if status_of(each) == "not run"]
    if waiting:
        console.print(f"Not run: {', '.join(waiting)} (why: claims --json)")
