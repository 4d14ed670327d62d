"""The page of a store: everything that its templates need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_lab.analysis.claims import BY_CONSTRUCTION, as_it_came
from rebalance_lab.analysis.ledger import Status
from rebalance_lab.analysis.results import Analysis, Verdict
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.files import History, Trial, replay_command
from rebalance_lab.report import text
from rebalance_lab.report.findings import status_of, surprises_of, tally
from rebalance_lab.report.focus import BOXES
from rebalance_lab.report.glossary import terms_of
from rebalance_lab.report.palette import textured
from rebalance_lab.report.selection import Choice, by_status, choose
from rebalance_lab.report.story import WORLDS, about
from rebalance_lab.report.templating import environment
from rebalance_lab.report.trial_page import Portrait, Shown, scene_of, show

if TYPE_CHECKING:
    from rebalance_lab.report.charts.chart import Chart, Section  # altair is slow to import

#: The largest number of boxes in all Gantts of one page, though each gets some: below 5 MB at about 350
#: bytes each.
BOXES_OF_A_PAGE = 12_000
LEAST_BOXES = 300


@dataclass(frozen=True, slots=True)
class Group:
    """A witness, its control and its sister, under the claims that they support. `brief`: whether it is one trial of
    a scenario without a claim. `about`: what the scenario does."""

    id: str
    verdicts: tuple[Verdict, ...]
    shown: tuple[Shown, ...]
    brief: bool
    about: str

    @property
    def first(self) -> bool:
        return self.id == "g1"

    @property
    def name(self) -> str:
        """Its claims and the scenario: `Z8, Z9 · split-brain`."""
        claims = ", ".join(dict.fromkeys(verdict.claim for verdict in self.verdicts))
        return f"{claims or 'Trial'} · {self.shown[0].trial.scenario}"

    @property
    def status(self) -> str | None:
        """The trial's own status, where the group is brief."""
        return status_of((*self.shown[0].findings, *self.shown[0].statements)) if self.brief else None


@dataclass(frozen=True, slots=True)
class Opening:
    """The pictures with which a page begins, as far as the store has them: who owned what in one trial, and what a
    change costs."""

    shown: Shown | None
    chart: Chart | None


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are. `folders`: folders of trials, for replay commands that the ledger does not give. `pages`:
    addresses of trials' own pages, relative to this one. Both by trial id."""

    folders: Mapping[str, Path]
    pages: Mapping[str, str]


def render(
    analysis: Analysis,
    histories: Mapping[str, History],
    *,
    folders: Mapping[str, Path] | None = None,
    pages: Mapping[str, str] | None = None,
) -> str:
    """One self-contained HTML page of a store: it needs no network and opens from disk.

    `histories` by trial id; `shown_trials(analysis)` lists those that are drawn. `folders`, `pages`: see `Places`.
    Raises ValueError for a history without events.
    """
    from rebalance_lab.report.charts import charts_of, scripts, specs_json  # noqa: PLC0415 - altair is slow to import

    choices = choose(analysis)
    where = Places(folders or {}, pages or {})
    most = max(min(BOXES, BOXES_OF_A_PAGE // max(sum(len(choice.trials) for choice in choices), 1)), LEAST_BOXES)
    groups = tuple(
        _group(analysis, histories, where, choice, number, most) for number, choice in enumerate(choices, start=1)
    )
    places = {shown.trial.id: shown for group in reversed(groups) for shown in reversed(group.shown)}
    found = by_status(analysis)
    opening, sections = _opening(analysis, histories, choices, charts_of(analysis))
    charts = [chart for section in sections for chart in section.charts]
    if opening is not None and opening.chart is not None:
        charts.append(opening.chart)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            summary=summary(analysis),
            opening=opening,
            trials=len(analysis.trials),
            size=analysis.size,
            tested=found.tested,
            constructed=found.constructed,
            by_construction=BY_CONSTRUCTION,
            not_run=found.not_run,
            groups=[group for group in groups if not group.brief],
            experiments=[group for group in groups if group.brief],
            surprises=surprises_of(analysis, lambda trial: _replay(trial, analysis.verdicts, where.folders)),
            places=places,
            pages=where.pages,
            words=terms_of(dict.fromkeys(trial.subject for trial in analysis.trials)),
            sections=sections,
            scripts=scripts() if charts else None,
            specs=specs_json({f"chart-{chart.id}": chart.spec for chart in charts}),
            counted=tally(analysis),
            cut_off=analysis.cut_off,
            left_out=analysis.left_out,
            textures=textured(),
            versions=_versions(analysis),
        )
    )


#: Statuses in the words of the summary.
_IN_WORDS = {
    Status.SURPRISE: "surprising",
    Status.AS_EXPECTED: "as expected",
    Status.DOES_NOT_APPLY: "to which the claim does not apply",
    Status.UNKNOWN: "unknown",
}


def summary(analysis: Analysis) -> str:
    """The whole page in one sentence; a second one for what holds by construction."""
    found = by_status(analysis)
    simulated = analysis.simulated
    trials = f"{analysis.size - simulated:,} live and {text.count(simulated, 'simulated trial')}"
    if found.tested:
        counts = Counter(verdict.status for verdict in found.tested)
        words = _IN_WORDS | {Status.AS_EXPECTED: f"as expected{as_it_came(found.tested)}"}
        told = [f"{counts[status]:,} {word}" for status, word in words.items() if counts[status]]
        were = "was" if len(found.tested) == 1 else "were"
        tested = f"{text.count(len(found.tested), 'reading')} of claims {were} tested"
        said = f"{tested}: {text.listed(told)}, in {trials}."
    else:
        said = f"No claim was tested yet, in {trials}."
    if not found.constructed:
        return said
    count = len(found.constructed)
    return f"{said} {count:,} more {'holds' if count == 1 else 'hold'} by construction, which is not evidence."


#: The check of the anomaly that a page begins with, if a trial shows it: a member works on after its session.
_TELLING = "zombie_overlap"


def _opening(
    analysis: Analysis,
    histories: Mapping[str, History],
    choices: Sequence[Choice],
    sections: tuple[Section, ...],
) -> tuple[Opening | None, tuple[Section, ...]]:
    """The pictures with which the page begins, and the sections without the chart that is among them. A page of few
    trials begins with theirs."""
    if len(choices) < 2:
        return None, sections
    telling = {each.trial for each in analysis.outcomes if (each.check, each.outcome) == (_TELLING, Outcome.VIOLATED)}
    trials = [trial for choice in choices for trial in choice.trials if trial.id in histories]
    trial = min(trials, key=lambda each: (each.id not in telling, each.world == "simulated"), default=None)
    shown = None if trial is None else _opening_trial(analysis, histories[trial.id], trial)
    costs = next((section for section in sections if section.id == "cost"), None)
    chart = None if costs is None else replace(costs.charts[0], title=f"{costs.title}: {costs.charts[0].title}")
    if shown is None and chart is None:
        return None, sections
    left = (replace(each, charts=each.charts[1:]) if each is costs else each for each in sections)
    return Opening(shown, chart), tuple(section for section in left if section.charts)


def _opening_trial(analysis: Analysis, history: History, trial: Trial) -> Shown:
    portrait = Portrait(
        prefix="opening",
        role="alone",
        title=f"in a trial of {trial.scenario} on a {WORLDS.get(trial.world, trial.world)}",
        trial=trial,
        replay="",
        boxes=LEAST_BOXES,
        brief=True,
    )
    scene = scene_of(trial, history, analysis.intervals)
    return show(portrait, scene, [each for each in analysis.outcomes if each.trial == trial.id])


def _group(
    analysis: Analysis, histories: Mapping[str, History], where: Places, choice: Choice, number: int, most: int
) -> Group:
    roles = {"witness": choice.witness, "control": choice.control, "sister": choice.sister}
    present = {role: trial for role, trial in roles.items() if trial is not None}
    scenes = {role: scene_of(trial, histories.get(trial.id), analysis.intervals) for role, trial in present.items()}
    until_us = max((scene.end_us for scene in scenes.values() if scene is not None), default=0)
    shown = tuple(
        show(
            Portrait(
                prefix=f"g{number}-{role}",
                role=role,
                title=_title(role, trial),
                trial=trial,
                replay=_replay(trial.id, analysis.verdicts, where.folders),
                page=where.pages.get(trial.id),
                boxes=most,
                brief=choice.brief or (role != "witness" and trial.id in where.pages),
            ),
            scenes[role],
            [outcome for outcome in analysis.outcomes if outcome.trial == trial.id],
            until_us=until_us,
        )
        for role, trial in present.items()
    )
    return Group(f"g{number}", choice.verdicts, shown, choice.brief, about(choice.witness))


def _replay(trial: str, verdicts: tuple[Verdict, ...], folders: Mapping[str, Path]) -> str:
    """The command that runs the trial again, from the ledger if it has one."""
    known = next((each.replay for each in verdicts if each.witness == trial and each.replay), None)
    return known or replay_command(folders.get(trial, trial))


def _title(role: str, trial: Trial) -> str:
    titles = {
        "witness": "Witness",
        "control": "Control: the same without the fault",
        "sister": f"The same on a {WORLDS.get(trial.world, trial.world)}",
    }
    return titles[role]


def _versions(analysis: Analysis) -> list[tuple[str, str]]:
    """Each component with its version, or all versions if trials differ."""
    found: dict[str, set[str]] = {}
    for trial in analysis.trials:
        for name, version in trial.versions.items():
            found.setdefault(name, set()).add(version)
    return [(name, ", ".join(sorted(versions))) for name, versions in sorted(found.items())]
