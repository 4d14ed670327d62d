"""One trial as a page shows it: its story, pictures, cards, checks and settings; and the page of one trial, which
needs no Spark because the checks judge the one history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from rebalance_lab.analysis.results import HerdCost, Interval, TrialOutcome
from rebalance_lab.analysis.trialwise.rows import herd_costs_of, intervals_of, outcomes_of
from rebalance_lab.checks import judge
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History, Trial, replay_command
from rebalance_lab.report.cards import Card, cards_of, overlap_layer
from rebalance_lab.report.census import Census, census_of
from rebalance_lab.report.findings import Finding, carded, findings_of, status_of
from rebalance_lab.report.focus import BOXES, focus_on
from rebalance_lab.report.gantt import Gantt, draw
from rebalance_lab.report.glossary import terms_of
from rebalance_lab.report.narrator import narrator_of
from rebalance_lab.report.palette import textured
from rebalance_lab.report.replica_chart import ReplicaChart, draw_replicas
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.spacetime import SpaceTime, draw_spacetime, subject_of
from rebalance_lab.report.story import WORLDS, about, rules_in_words
from rebalance_lab.report.templating import environment
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import plan_like


@dataclass(frozen=True, slots=True, kw_only=True)
class Portrait:
    """What to show of a trial, and where; `show` draws it. `role`: witness | control | sister | alone. `page`: the
    address of its own page, relative to this one; None if there is none. `boxes`: the largest number in its Gantt.
    `brief`: only its story and the Gantt; its own page has the rest."""

    prefix: str
    role: str
    title: str
    trial: Trial
    replay: str
    page: str | None = None
    boxes: int = BOXES
    brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Portrait):
    """One trial on a page. Without its history only the outcomes and settings are shown. `findings`: of checks for
    anomalies; `statements`: of the others. `costs`: of each spaced change."""

    scene: Scene | None
    census: Census | None
    gantt: Gantt | None
    replicas: ReplicaChart | None
    spacetime: SpaceTime | None
    story: tuple[str, ...]
    cards: tuple[Card, ...]
    findings: tuple[Finding, ...]
    statements: tuple[Finding, ...]
    costs: tuple[HerdCost, ...]

    def plainly(self, text: str) -> str:
        """The text with members' short names, as far as the history gives them."""
        return text if self.scene is None else self.scene.plainly(text)

    @property
    def changed(self) -> str:
        """The parameters that differ from the scenario's defaults: `members 200, partitions 400`."""
        try:
            names = plan_like(self.trial).changed
        except PlanError:
            return ""
        return ", ".join(f"{name} {self.trial.parameters[name]}" for name in names)

    @property
    def cards_by_layer(self) -> dict[Layer, str]:
        """The card to which an overlap in a layer leads."""
        return {layer: card.id for card in self.cards if (layer := overlap_layer(card.check)) is not None}


def scene_of(trial: Trial, history: History | None, intervals: Sequence[Interval]) -> Scene | None:
    """The scene of a trial whose history is available. Raises ValueError for a history without events."""
    return None if history is None else build_scene(History(trial, history.events), intervals)


def show(portrait: Portrait, scene: Scene | None, outcomes: Sequence[TrialOutcome], *, until_us: int = 0) -> Shown:
    """A trial with its pictures. `outcomes` are this trial's. `until_us` may extend the time axis, so that two trials
    can be compared."""
    findings = findings_of(portrait.trial, outcomes)
    wrong = carded(findings)
    census = gantt = replicas = spacetime = None
    costs: tuple[HerdCost, ...] = ()
    story: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    if scene is not None:
        subject = subject_of(scene, [finding.outcome for finding in wrong])
        proof = [each for finding in wrong for each in finding.outcome.witness]
        focus = focus_on(scene, proof, most=portrait.boxes)
        gantt = draw(scene, portrait.prefix, focus, until_us=max(until_us, scene.end_us))
        replicas = draw_replicas(scene, gantt)
        if not portrait.brief:
            census = census_of(scene, portrait.prefix, focus)
            spacetime = None if subject is None else draw_spacetime(scene, subject, portrait.prefix)
            costs = tuple(herd_costs_of(History(portrait.trial, scene.events)))
            cards = cards_of(scene, gantt, spacetime, wrong, portrait.replay)
        story = narrator_of(portrait.trial.subject).tell(scene, [finding.outcome for finding in wrong])
    return Shown(
        **{each.name: getattr(portrait, each.name) for each in fields(Portrait)},
        scene=scene,
        census=census,
        gantt=gantt,
        replicas=replicas,
        spacetime=spacetime,
        story=story,
        cards=cards,
        findings=tuple(each for each in findings if not each.statement),
        statements=tuple(each for each in findings if each.statement),
        costs=costs,
    )


# -- the page of one trial ------------------------------------------------------------------------


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
    where = f"{WORLDS.get(trial.world, trial.world)}, {rules_in_words(trial)}"
    return (
        environment()
        .get_template("trial_page.html.j2")
        .render(
            shown=shown,
            about=f"{about(trial)}. On a {where}.",
            status=status_of((*shown.findings, *shown.statements)),
            home=home,
            words=terms_of([trial.subject]),
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


def story_of(history: History, folder: Path) -> tuple[str, ...]:
    """What happened in a trial, in at most five sentences. Raises as `render_trial`."""
    return _shown(history, folder, brief=True).story


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
