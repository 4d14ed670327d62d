"""A subject is added by files of its own: nodes, an event, a check, a row of the picture, faults, in every world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import toy_clock

from rebalance_lab.analysis.analyse import analyse
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.checks import CHECKS, Outcome, judge
from rebalance_lab.history import intervals
from rebalance_lab.history.files import load
from rebalance_lab.report.gantt import draw
from rebalance_lab.report.scene import build_scene
from rebalance_lab.report.trial_page import render_trial
from rebalance_lab.trials import api, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


@pytest.fixture(autouse=True)
def _clocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    scenario.scenario_names()  # the lab's own are there before ours
    registries: list[dict[str, Any]] = [CHECKS, intervals.REGISTERED, scenario._SCENARIOS]
    before = [dict(registry) for registry in registries]
    scenario.register(toy_clock.SCENARIO)
    monkeypatch.setenv("PYTHONPATH", str(Path(toy_clock.__file__).parent))  # a node's process imports its role
    yield
    for registry, was in zip(registries, before, strict=True):
        registry.clear()
        registry.update(was)


@pytest.fixture(params=["simulated", "processes"])
def result(request: pytest.FixtureRequest, tmp_path: Path) -> api.TrialResult:
    return api.run(api.make_plan("clocks", world=request.param), tmp_path)


def test_its_own_check_judges_it_and_it_is_as_expected(result: api.TrialResult) -> None:
    assert {name: finding.outcome for name, finding in result.findings.items()} == {"clock_is_there": Outcome.CLEAN}
    assert result.status == api.TrialStatus.AS_EXPECTED
    assert result.trial.subject == "clock"


def test_who_held_what_is_a_row_of_the_picture(result: api.TrialResult) -> None:
    history = load(result.folder)
    picture = draw(build_scene(history, intervals_of(history)), "x")
    assert [line.label for line in picture.lines] == ["clock/0"]
    holders = [box.members for lane in picture.lines[0].lanes for box in lane.boxes if box.kind == "held"]
    assert len(holders) >= 2  # the pause or the kill passed the clock on
    assert set(holders) == {("c1",), ("c2",)}


def test_reports_use_its_words(tmp_path: Path) -> None:
    history, _ = simulate(api.make_plan("clocks"))
    scene = build_scene(history, intervals_of(history))
    held = next(event for event in history.events if event.kind is toy_clock.HELD)
    assert scene.words.deed(held, "c1") == "c1 believes it holds the clock"
    page = render_trial(history, tmp_path)
    for words in (
        "share 1 hand",
        "the pair is at rest again",
        "A node that wants to hold",
        "no clock believes it holds",
    ):
        assert words in page
    for words in ("no member", "partitions", "the group"):
        assert words not in page


def test_its_check_can_say_no() -> None:
    history, _ = simulate(api.make_plan("clocks"))
    forged = [
        msgspec.structs.replace(event, zxid=99) if event.kind is toy_clock.HELD else event for event in history.events
    ]
    finding = judge(msgspec.structs.replace(history, events=tuple(forged)))["clock_is_there"]
    assert finding.outcome is Outcome.VIOLATED


def test_spark_judges_it_and_finds_who_held_what(tmp_path: Path, local_spark: LocalSpark) -> None:
    result = api.run(api.make_plan("clocks"), tmp_path)
    analysis = analyse(tmp_path, spark=local_spark.session, intervals_for=[result.trial.id])
    assert {each.check: each.outcome for each in analysis.outcomes} == {"clock_is_there": Outcome.CLEAN}
    assert analysis.intervals == intervals_of(load(result.folder))
    assert {each.member for each in analysis.intervals} == {"c1", "c2"}
