"""`report`: one HTML page of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.cli.analysing import analysed
from rebalance_lab.cli.failures import Failure, exit_code, spoken
from rebalance_lab.cli.options import DEFAULT_STORE, StoreOption
from rebalance_lab.history.files import trial_folders
from rebalance_lab.report import shown_trials, summary, write


def report(
    *,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[
        Path | None, typer.Option("--out", help="The page; STORE/report.html where left out.", metavar="FILE")
    ] = None,
) -> None:
    """Write what a store's trials show as one page that opens from disk."""
    if not trial_folders(store):
        raise Failure(f"{store} holds no trial; make some: rebalance-lab run zombie --store {store}")
    analysis = analysed(store, shown_trials)
    with spoken():
        page = write(analysis, store, out or store / "report.html")
    print(summary(analysis))
    print(page)
    raise typer.Exit(exit_code([verdict.status for verdict in analysis.verdicts]))
