"""`report`: an HTML page of a store, or of one trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.analysis.uri import Place, StoreUri
from rebalance_lab.cli.claims import Judging, analysed, code_of
from rebalance_lab.cli.failures import Failure, must_be_file, must_be_writable
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    AnyStoreOption,
    ConfOption,
    CoresOption,
    EventLogOption,
    MasterOption,
    RejudgeOption,
    UiOption,
    settings_of_spark,
    trial_folder,
)
from rebalance_lab.cli.terminal import say
from rebalance_lab.history.files import TRIAL_FILE, load, trial_folders, write_whole
from rebalance_lab.report.files import write, write_trial
from rebalance_lab.report.page import summary
from rebalance_lab.report.selection import shown_trials
from rebalance_lab.report.trace import trace_of


def report(
    what: Annotated[
        str | None,
        typer.Argument(help="A trial or a store. Default: the store that --store names.", metavar="[TRIAL|STORE]"),
    ] = None,
    *,
    store: AnyStoreOption = DEFAULT_STORE,
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
    conf: ConfOption = None,
) -> None:
    """Write a store, or one trial, as an HTML page that opens from disk.

    Of a store at a URI the page is report.html, and the trials that it shows
    are fetched to the folder trials beside it.
    """
    judging = Judging(cores, master, rejudge, event_log, ui, settings_of_spark(conf))
    place = store if what is None else _place(what, store)
    for option, file in (("--out", out), ("--trace", trace)):
        if file is not None:
            must_be_file(file, option)
    if isinstance(place, StoreUri):
        raise typer.Exit(_of_uri(place, out or Path("report.html"), judging, with_pages=pages))
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


def _of_uri(store: StoreUri, out: Path, judging: Judging, *, with_pages: bool) -> int:
    """Write the page of a store at a URI; returns the exit code."""
    fetched = out.parent / DEFAULT_STORE
    must_be_writable(fetched, f"to {fetched}, where the trials that are shown go", "another place with --out")
    analysis = analysed(store, shown_trials, judging, into=fetched)
    page = write(analysis, fetched, out, with_pages=with_pages)
    say(summary(analysis), markup=False)
    print(page)
    return code_of(analysis)


def _place(what: str, store: Place) -> Place:
    """The folder of a trial, or a store. Raises Failure."""
    if (uri := StoreUri.parse(what)) is not None:
        return uri
    if isinstance(store, StoreUri):
        raise Failure(f"{what}: a trial of a store at a URI has no page of its own; `report` of the store fetches some")
    return Path(what) if what and Path(what).is_dir() else trial_folder(what, store)


def _of_trial(folder: Path, out: Path | None, trace: Path | None) -> None:
    if trace is not None:
        write_whole(trace, trace_of(load(folder)))
        print(trace)
    print(write_trial(folder, out))
