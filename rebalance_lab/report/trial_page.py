"""The page of one trial. It needs no Spark: the checks judge the one history."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.analysis.trialwise.rows import intervals_of, outcomes_of
from rebalance_lab.checks import judge
from rebalance_lab.history.files import History, replay_command
from rebalance_lab.report.findings import status_of
from rebalance_lab.report.palette import textured
from rebalance_lab.report.shown import Portrait, Shown, scene_of, show
from rebalance_lab.report.story import RULES, WORLDS, about
from rebalance_lab.report.templating import environment

#: Above and below the drawing of a notebook's picture, and each sentence of its story; and how much the drawing is
#: shrunk there. In pixels.
_AROUND_PX, _SENTENCE_PX, _SHRUNK = 190, 27, 0.85


def render_trial(history: History, folder: Path, *, home: str | None = None) -> str:
    """One self-contained HTML page of one trial: it needs no network and opens from disk.

    `folder`: where the trial is stored, for its replay command. `home`: the address of its store's page, relative to
    this one. Raises ValueError for a history without events, HistoryError for events that no recorder of this lab
    writes.
    """
    trial = history.trial
    shown = _shown(history, folder, brief=False)
    where = f"{WORLDS.get(trial.world, trial.world)}, {RULES.get(trial.rules, trial.rules)}"
    return (
        environment()
        .get_template("trial_page.html.j2")
        .render(
            shown=shown,
            about=f"{about(trial)}. On a {where}.",
            status=status_of((*shown.findings, *shown.statements)),
            home=home,
            textures=textured(),
        )
    )


def render_picture(history: History, folder: Path) -> tuple[str, int]:
    """A trial's story and its ownership over time, as a page to be shown within another; and its height in pixels.
    Raises as `render_trial`."""
    shown = _shown(history, folder, brief=True)
    assert shown.gantt is not None, "there is a scene"
    height_px = round(_AROUND_PX + _SENTENCE_PX * len(shown.story) + _SHRUNK * shown.gantt.height)
    return environment().get_template("picture.html.j2").render(shown=shown, textures=textured()), height_px


def _shown(history: History, folder: Path, *, brief: bool) -> Shown:
    trial = history.trial
    portrait = Portrait(
        prefix="t",
        role="alone",
        title="Control: nothing is injected" if trial.control else "The trial",
        trial=trial,
        replay=replay_command(folder),
        brief=brief,
    )
    return show(portrait, scene_of(trial, history, intervals_of(history)), outcomes_of(trial, judge(history)))
