"""Pages as files: the page of a store with those of its trials, or the page of one trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.history.files import History, load, trial_folders, write_whole
from rebalance_lab.report.page import render
from rebalance_lab.report.selection import shown_trials
from rebalance_lab.report.trial_page import render_trial

#: Beside the page of a store: the folder of its trials' pages.
PAGES = "pages"


def write(analysis: Analysis, store: Path, out: Path, *, with_pages: bool = True) -> Path:
    """Render the page of a store of trials into the file `out`, in one rename; returns it.

    `with_pages`: also write a page for each trial shown, into the folder `pages` beside it; the pages link to each
    other. Otherwise the page links to existing ones. Raises HistoryError if a trial to be shown cannot be read,
    OSError if a file cannot be written.
    """
    folders = {folder.resolve().name: folder for folder in trial_folders(store)}
    out_of = {each.trial for each in analysis.left_out}
    histories = {name: load(folders[name]) for name in shown_trials(analysis) if name in folders.keys() - out_of}
    if with_pages:
        for name, history in histories.items():
            page = render_trial(history, folders[name], home=f"../{quote(out.name)}")
            _put(out.parent / PAGES / f"{name}.html", page)
    _put(out, render(analysis, histories, folders=folders, pages=_pages(out.parent, histories)))
    return out


def write_trial(folder: Path, out: Path | None = None) -> Path:
    """Render the page of a stored trial; returns its file. By default that is where its store's page looks for it:
    `pages/TRIAL.html` in the store. Raises as `write`."""
    history = load(folder)
    home = None
    if out is None:
        store = folder.resolve().parent
        out = store / PAGES / f"{history.trial.id}.html"
        home = "../report.html" if (store / "report.html").is_file() else None
    _put(out, render_trial(history, folder, home=home))
    return out


def _pages(beside: Path, histories: Mapping[str, History]) -> dict[str, str]:
    """The addresses of existing pages of trials."""
    return {name: f"{PAGES}/{quote(name)}.html" for name in histories if (beside / PAGES / f"{name}.html").is_file()}


def _put(out: Path, page: str) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, page.encode())
