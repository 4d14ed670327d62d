"""The page: what the templates need, put together."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from rebalance_lab.analysis.results import Analysis, TrialOutcome, Verdict
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History, Trial, load, trial_folders
from rebalance_lab.report import glossary, text
from rebalance_lab.report.cards import Card, cards_of, layer_of, meaning
from rebalance_lab.report.gantt import Gantt, draw
from rebalance_lab.report.palette import textured
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.selection import Choice, by_status, choose, shown_trials
from rebalance_lab.report.story import WORLDS, tell
from rebalance_lab.report.tallies import tally


@dataclass(frozen=True, slots=True)
class Shown:
    """One trial on the page; `role`: witness | control | sister.

    Without its history only the outcomes and settings are shown.
    """

    prefix: str
    role: str
    title: str
    trial: Trial
    scene: Scene | None
    gantt: Gantt | None
    story: tuple[str, ...]
    cards: tuple[Card, ...]
    outcomes: tuple[TrialOutcome, ...]
    replay: str

    def plainly(self, text: str) -> str:
        """The text with members' short names, where the history told them."""
        return text if self.scene is None else self.scene.plainly(text)

    @property
    def cards_by_layer(self) -> dict[Layer, str]:
        """The card an overlap in that layer leads to."""
        return {layer: card.id for card in self.cards if (layer := layer_of(card.check)) is not None}


@dataclass(frozen=True, slots=True)
class Group:
    """A witness, its control and its sister, under the claims that stand on them."""

    id: str
    verdicts: tuple[Verdict, ...]
    shown: tuple[Shown, ...]


def render(analysis: Analysis, histories: Mapping[str, History], *, folders: Mapping[str, Path] | None = None) -> str:
    """One self-contained HTML page: no network, opens from disk.

    `histories` by trial id; `shown_trials(analysis)` says which are drawn. `folders`: where
    trials are stored, for the replay commands that the ledger does not give. Raises ValueError
    for a history without events.
    """
    groups = tuple(
        _group(analysis, histories, folders or {}, choice, number)
        for number, choice in enumerate(choose(analysis), start=1)
    )
    places = {shown.trial.id: shown for group in reversed(groups) for shown in reversed(group.shown)}
    ordered = by_status(analysis.verdicts)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            summary=summary(analysis),
            tested=[verdict for verdict in ordered if verdict.status != "not run"],
            not_run=[verdict for verdict in ordered if verdict.status == "not run"],
            groups=groups,
            places=places,
            kinds=tally(analysis),
            textures=textured(),
            versions=_versions(analysis),
        )
    )


def write(analysis: Analysis, store: Path, out: Path) -> Path:
    """Render the page for a store of trials into the file `out`, in one rename; returns it.

    Raises HistoryError when a trial to be shown cannot be read, OSError when `out` cannot be written.
    """
    folders = {folder.resolve().name: folder for folder in trial_folders(store)}
    histories = {name: load(folders[name]) for name in shown_trials(analysis) if name in folders}
    page = render(analysis, histories, folders=folders)
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    part.write_text(page, encoding="utf-8")
    os.replace(part, out)
    return out


def summary(analysis: Analysis) -> str:
    """The whole page in one sentence."""
    statuses = [verdict.status for verdict in analysis.verdicts]
    tested = sum(status != "not run" for status in statuses)
    simulated = sum(trial.world == "simulated" for trial in analysis.trials)
    trials = f"{len(analysis.trials) - simulated:,} live and {text.count(simulated, 'simulated trial')}"
    if not tested:
        return f"No claim was put to the test yet, in {trials}."
    told = [
        f"{statuses.count(status):,} {word}"
        for status, word in (("surprise", "surprising"), ("as expected", "as expected"), ("unknown", "unknown"))
        if status in statuses
    ]
    return f"Of {text.count(tested, 'reading')} of claims put to the test, {text.listed(told)}, in {trials}."


def _group(
    analysis: Analysis, histories: Mapping[str, History], folders: Mapping[str, Path], choice: Choice, number: int
) -> Group:
    roles = {"witness": choice.witness, "control": choice.control, "sister": choice.sister}
    present = {role: trial for role, trial in roles.items() if trial is not None}
    scenes = {
        role: build_scene(History(trial, histories[trial.id].events), analysis.intervals)
        for role, trial in present.items()
        if trial.id in histories
    }
    until_us = max((scene.end_us for scene in scenes.values()), default=0)
    shown = []
    for role, trial in present.items():
        prefix = f"g{number}-{role}"
        scene = scenes.get(role)
        gantt = None if scene is None else draw(scene, prefix, until_us=until_us)
        outcomes = tuple(outcome for outcome in analysis.outcomes if outcome.trial == trial.id)
        replay = _replay(trial.id, analysis.verdicts, folders)
        cards = () if scene is None or gantt is None else cards_of(scene, gantt, outcomes, replay)
        shown.append(
            Shown(
                prefix=prefix,
                role=role,
                title=_title(role, trial),
                trial=trial,
                scene=scene,
                gantt=gantt,
                story=() if scene is None else tell(scene),
                cards=cards,
                outcomes=outcomes,
                replay=replay,
            )
        )
    return Group(f"g{number}", choice.verdicts, tuple(shown))


def _replay(trial: str, verdicts: tuple[Verdict, ...], folders: Mapping[str, Path]) -> str:
    """The command that runs the trial again: the ledger's where it has one."""
    known = next((each.replay for each in verdicts if each.witness == trial and each.replay), None)
    return known or f"rebalance-lab replay {shlex.quote(str(folders.get(trial, trial)))}"


def _title(role: str, trial: Trial) -> str:
    titles = {
        "witness": "Witness",
        "control": "Control: the same without the fault",
        "sister": f"The same on a {WORLDS.get(trial.world, trial.world)}",
    }
    return titles[role]


def _versions(analysis: Analysis) -> list[tuple[str, str]]:
    """Each component with its version, all of them where trials differ."""
    found: dict[str, set[str]] = {}
    for trial in analysis.trials:
        for name, version in trial.versions.items():
            found.setdefault(name, set()).add(version)
    return [(name, ", ".join(sorted(versions))) for name, versions in sorted(found.items())]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rebalance_lab.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        coded=text.coded, seconds=text.seconds, exact=text.exact_moment, title_of=glossary.title, meaning_of=meaning
    )
    environment.globals.update(worlds=WORLDS)
    return environment
