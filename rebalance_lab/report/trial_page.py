"""The page of one trial. It needs no Spark: what one history says, the checks say."""

from __future__ import annotations

import shlex
from pathlib import Path

from rebalance_lab.analysis.results import Interval, TrialOutcome
from rebalance_lab.checks import judge
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import ownership_intervals
from rebalance_lab.report.findings import status_of
from rebalance_lab.report.palette import textured
from rebalance_lab.report.shown import Portrait, scene_of, show
from rebalance_lab.report.story import RULES, WORLDS, about
from rebalance_lab.report.templating import environment


def render_trial(history: History, folder: Path, *, home: str | None = None) -> str:
    """One self-contained HTML page of one trial: no network, opens from disk.

    `folder`: where the trial is stored, for its replay command; `home`: the address of its
    store's page, relative to this one. Raises ValueError for a history without events,
    HistoryError for events that no recorder of this lab writes.
    """
    trial = history.trial
    portrait = Portrait(
        prefix="t",
        role="alone",
        title="Control: nothing is injected" if trial.control else "The trial",
        trial=trial,
        replay=f"rebalance-lab replay {shlex.quote(str(folder))}",
    )
    shown = show(portrait, scene_of(trial, history, intervals_of(history)), outcomes_of(history))
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


def outcomes_of(history: History) -> tuple[TrialOutcome, ...]:
    """What every check says of the trial, as Spark's table has it."""
    trial = history.trial
    return tuple(
        TrialOutcome(
            trial=trial.id,
            scenario=trial.scenario,
            world=trial.world,
            rules=trial.rules,
            seed=trial.seed,
            control=trial.control,
            plant=trial.plant,
            check=check,
            outcome=finding.outcome.value,
            why=finding.why,
            witness=finding.witness,
            longest_us=finding.measures.get("longest_us", 0),
            count=finding.measures.get("count", 0),
        )
        for check, finding in judge(history).items()
    )


def intervals_of(history: History) -> tuple[Interval, ...]:
    """Who had what when, in all three layers, as Spark's table has it."""
    return tuple(
        Interval(
            trial=history.trial.id,
            layer=each.layer.value,
            member=each.member,
            group=each.group,
            topic=each.topic,
            partition=each.partition,
            begin_us=each.begin_us,
            end_us=each.end_us,
            begin=each.begin,
            end=each.end,
        )
        for each in ownership_intervals(history)
    )
