"""The space-time diagram: what it shows, in which order, and what led to what."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest

from rebalance_lab.analysis.trialwise.rows import intervals_of, outcomes_of
from rebalance_lab.checks import judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.spacetime import SpaceTime, draw_spacetime, subject_of
from rebalance_lab.report.spacetime.beats import Beat
from rebalance_lab.report.spacetime.timeline import QUIET_US, lay_out
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


@cache
def trial(name: str, **settings: str) -> tuple[History, Scene]:
    history, _ = simulate(make_plan(name, settings=settings))
    return history, build_scene(history, intervals_of(history))


def diagram(name: str, check: str | None = None) -> SpaceTime:
    """Around the violation of a check; without one, around the first fault or change."""
    history, scene = trial(name)
    wrong = [
        each
        for each in outcomes_of(history.trial, judge(history))
        if each.check == check and each.outcome == Outcome.VIOLATED
    ]
    assert bool(wrong) == (check is not None)
    subject = subject_of(scene, wrong)
    assert subject is not None
    return draw_spacetime(scene, subject, "x")


class TestUncontrolled:
    @pytest.fixture
    def drawing(self) -> SpaceTime:
        return diagram("uncontrolled", "non_convergence")

    def test_every_refused_claim_names_its_holder(self, drawing: SpaceTime) -> None:
        refused = [mark for mark in drawing.marks if mark.label.startswith("refused")]
        assert [mark.label for mark in refused] == ["refused 3–5: m1’s"] * 4
        assert all(mark.shape == "failure" for mark in refused)

    def test_all_witnesses_are_marked(self, drawing: SpaceTime) -> None:
        history, _ = trial("uncontrolled")
        witness = judge(history)["non_convergence"].witness
        marks = {mark.id: mark for mark in drawing.marks}
        assert len(witness) == 3
        assert all(marks[drawing.anchors[each]].key for each in witness)
        assert sum(mark.key for mark in drawing.marks) == 3

    def test_a_change_is_no_fault(self, drawing: SpaceTime) -> None:
        assert [mark.label for mark in drawing.marks if mark.shape == "change"] == ["m2 joins"]
        assert [mark for mark in drawing.marks if mark.shape == "fault"] == []

    def test_it_is_about_a_partition_though_its_witness_names_none(self, drawing: SpaceTime) -> None:
        history, scene = trial("uncontrolled")
        wrong = [
            each
            for each in outcomes_of(history.trial, judge(history))
            if each.outcome == Outcome.VIOLATED and each.check != "churn"
        ]
        subject = subject_of(scene, wrong)
        assert subject is not None
        assert subject.title == "Around the first anomaly: non-convergence"
        assert subject.row is not None
        assert subject.row.partition in {3, 4, 5}


class TestOrder:
    @pytest.mark.parametrize(
        ("name", "check"), [("uncontrolled", "non_convergence"), ("zombie", "zombie_overlap"), ("herd", None)]
    )
    def test_later_is_never_higher_and_nothing_lies_on_anything_else(self, name: str, check: str | None) -> None:
        drawing = diagram(name, check)
        assert len(drawing.marks) > 10
        for lane in drawing.lanes:
            ys = [mark.y for mark in drawing.marks if mark.x == lane.x]
            assert all(below - above >= 10 for above, below in pairwise(sorted(ys)))
        assert all(0 < mark.y < drawing.height for mark in drawing.marks)
        assert [lane.left for lane in drawing.lanes] == sorted(lane.left for lane in drawing.lanes)

    def test_long_quiet_stretches_are_cut_and_named(self) -> None:
        at = [0, 1_000, QUIET_US * 10]
        beats = [Beat("m1", each, each, "life", "x", "", (), 1, (), False) for each in at]
        timeline = lay_out(beats, [])
        assert [length_us for _, length_us in timeline.pauses] == [QUIET_US * 10 - 1_000]
        assert timeline.ys == tuple(sorted(timeline.ys))
        assert timeline.y(500) == pytest.approx((timeline.ys[0] + timeline.ys[1]) / 2, abs=0.2)


class TestArrows:
    def test_of_a_herd_every_reaction_has_its_watch(self) -> None:
        drawing = diagram("herd")
        kinds = [arrow.kind for arrow in drawing.arrows]
        assert drawing.title.startswith("Around the first change: m9 joins")
        lanes = [lane.actor for lane in drawing.lanes]
        assert lanes[0] == "runner"
        assert "others" in lanes
        told = [mark for mark in drawing.marks if mark.shape == "watch"]
        # four members with a lane of their own, and the crowd, are told by one znode, and react
        assert kinds.count("watch") == len(told) == 5
        assert kinds.count("cause") >= 5

    def test_the_crowd_counts_who_it_is(self) -> None:
        drawing = diagram("herd")
        assert "4 × rebalances" in [mark.label for mark in drawing.marks]
        assert len(drawing.crowd) == 5

    def test_a_pause_leads_to_its_member(self) -> None:
        drawing = diagram("zombie", "belief_overlap")
        faults = [arrow for arrow in drawing.arrows if arrow.kind == "fault"]
        assert len(faults) == 2
        assert [mark.label for mark in drawing.marks if mark.shape == "fault"] == ["pauses m1", "wakes m1"]
        assert [stripe.kind for stripe in drawing.stripes].count("fault") == 1


def test_what_is_not_disturbed_has_no_diagram() -> None:
    history, _ = simulate(make_plan("zombie", control=True))
    scene = build_scene(history, intervals_of(history))
    assert not [event for event in scene.events if event.kind is Kind.FAULT_BEGAN]
    assert subject_of(scene, []) is None
