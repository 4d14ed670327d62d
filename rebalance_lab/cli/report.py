"""`report`: an HTML page of a store, or of one trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.cli.claims import Judging, analysed, code_of
from rebalance_lab.cli.failures import Failure, must_be_file
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    CoresOption,
    EventLogOption,
    MasterOption,
    RejudgeOption,
    StoreOption,
    UiOption,
    trial_folder,
)
from rebalance_lab.cli.terminal import say
from rebalance_lab.history.files import TRIAL_FILE, load, trial_folders, write_whole
from rebalance_lab.report import shown_trials, summary, trace_of, write, write_trial


def report(
    what: Annotated[
        str | None,
        typer.Argument(help="A trial or a store. Default: the store that --store names.", metavar="[TRIAL|STORE]"),
    ] = None,
    *,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page. Default: STORE/report.html or STORE/pages/TRIAL.html.", metavar="FILE"),
    ] = None,
    pages: Annotated[
        bool,
        typer.Option("--pages/--no-pages", help="For a store: also write a page for each trial shown, in STORE/pages."),
    ] = True,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", help="For a trial: also write a trace for Perfetto or chrome://tracing.", metavar="FILE"
        ),
    ] = None,
    cores: CoresOption = None,
    master: MasterOption = None,
    rejudge: RejudgeOption = False,
    event_log: EventLogOption = None,
    ui: UiOption = False,
) -> None:
    """Write a store, or one trial, as an HTML page that opens from disk."""
    judging = Judging(cores, master, rejudge, event_log, ui)
    place = store if what is None else _place(what, store)
    for option, file in (("--out", out), ("--trace", trace)):
        if file is not None:
            must_be_file(file, option)
    if (place / TRIAL_FILE).is_file():
        _of_trial(place, out, trace)
        return
    if trace is not None:
        raise Failure(f"--trace needs one trial: rebalance-lab report TRIAL --trace {trace}")
    if not trial_folders(place):
        raise Failure(f"{place} holds no trial; run some: rebalance-lab run zombie --store {place}")
    analysis = analysed(place, shown_trials, judging)
    page = write(analysis, place, out or place / "report.html", with_pages=pages)
    say(summary(analysis), markup=False)
    print(page)
    raise typer.Exit(code_of(analysis))


def _place(what: str, store: Path) -> Path:
    """The folder of a trial, or a store. Raises Failure."""
    return Path(what) if what and Path(what).is_dir() else trial_folder(what, store)


def _of_trial(folder: Path, out: Path | None, trace: Path | None) -> None:
    if trace is not None:
        write_whole(trace, trace_of(load(folder)))
        print(trace)
    print(write_trial(folder, out))
