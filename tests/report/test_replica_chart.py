"""The picture of replicas shows what the history has: epochs, the ISR, logs that are cut off, and lost records."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.checks import lost_write
from rebalance_lab.checks.partition_states import Place, partition_states
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import TRUNCATED
from rebalance_lab.history.views import events_of
from rebalance_lab.report.gantt import draw
from rebalance_lab.report.replica_chart import PartitionChart, ReplicaChart, draw_replicas
from rebalance_lab.report.scene import build_scene
from rebalance_lab.report.trial_page import render_trial, story_of
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

PLACE = Place("t1", 0)

NAMES = (
    "broker-crash",
    "committed-data",
    "all-replicas-down",
    "last-replica-standing",
    "frozen-isr",
    "controller-race",
)


@cache
def history(name: str) -> History:
    settings = {"unclean": "true"} if name == "all-replicas-down" else {}
    return simulate(make_plan(name, seed=5, settings=settings))[0]


@cache
def chart(name: str) -> ReplicaChart:
    scene = build_scene(history(name), intervals_of(history(name)))
    found = draw_replicas(scene, draw(scene, "t"))
    assert found is not None
    return found


def partition(name: str) -> PartitionChart:
    (found,) = chart(name).partitions
    return found


def told(name: str, kind: str) -> int:
    """The number of records that traces of a kind speak of."""
    titles = [trace.title for trace in partition(name).traces if trace.kind == kind]
    return sum(int(title.split()[0].replace(",", "")) for title in titles)


@pytest.mark.parametrize("name", NAMES)
def test_every_acknowledged_record_has_its_fate(name: str) -> None:
    measures = lost_write.judge(history(name)).measures
    assert told(name, "lost") == measures["count"]
    assert told(name, "lost") + told(name, "kept") == measures["acknowledged"]
    assert told(name, "unread") == 0


def test_some_of_these_lose_records_and_some_do_not() -> None:
    assert [told(name, "lost") > 0 for name in NAMES] == [False, False, True, True, False, False]


@pytest.mark.parametrize("name", NAMES)
def test_the_lane_of_epochs_is_that_of_the_state_znode(name: str) -> None:
    states = [state for _, state in partition_states(history(name))[PLACE]]
    wanted = list(dict.fromkeys((state.leader_epoch, state.leader >= 0) for state in states))
    bars = partition(name).lanes[0].bars
    found = [(int(re.match(r"Leader epoch (\d+):", bar.title)[1]), bar.kind == "epoch") for bar in bars]
    assert found == wanted


@pytest.mark.parametrize("name", NAMES)
def test_lanes_begin_and_end_in_the_plot(name: str) -> None:
    scale = chart(name).scale
    bars = [bar for lane in partition(name).lanes for bar in lane.bars]
    assert bars
    assert all(scale.left <= bar.x and bar.x + bar.width <= scale.left + scale.width + 2 for bar in bars)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_cut_off_has_an_arrow(name: str) -> None:
    cuts = [event for event in events_of(history(name), TRUNCATED) if event.of("from_offset") != event.of("to_offset")]
    assert len([spot for spot in partition(name).spots if spot.kind == "cut"]) == len(cuts)
    assert cuts or name not in ("all-replicas-down", "last-replica-standing")


def test_a_replica_outside_the_isr_has_a_gap() -> None:
    lanes = {lane.label: lane.bars for lane in partition("last-replica-standing").lanes}
    assert sorted(len([bar for bar in bars if bar.kind == "in-sync"]) for bars in lanes.values()) == [0, 1, 2]


def test_a_leader_that_counts_a_follower_before_zookeeper_does_shows() -> None:
    kinds = {bar.kind for lane in partition("last-replica-standing").lanes for bar in lane.bars}
    assert "assumed" in kinds


def test_a_group_has_no_such_picture() -> None:
    found = simulate(make_plan("zombie"))[0]
    scene = build_scene(found, intervals_of(found))
    assert draw_replicas(scene, draw(scene, "t")) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_both_pictures(name: str) -> None:
    page = render_trial(history(name), Path("trials") / name)
    assert 'id="t-replicas"' in page
    assert 'data-partition="-1"' in page  # the row of the controller
    assert "no partition is drawn" not in page


@pytest.mark.parametrize("name", ["all-replicas-down", "last-replica-standing"])
def test_circles_do_not_hide_what_is_lost(name: str) -> None:
    page = render_trial(history(name), Path("trials") / name)
    (offsets,) = re.findall(r'<g class="offsets".*?<g class="marks"', page, re.DOTALL)
    drawn = re.findall(r"trace trace-\w+|<circle", offsets)
    assert drawn.index("trace trace-lost") > len(drawn) - 1 - drawn[::-1].index("<circle")
    assert drawn.index("trace trace-kept") < drawn.index("<circle")


def test_the_story_names_what_happened_between_leaders() -> None:
    unclean = " ".join(story_of(history("all-replicas-down"), Path("trials") / "x"))
    assert re.search(r"For [\d.]+ m?s no broker leads t1/0", unclean)
    assert "was not in the ISR when elected" in unclean
    assert "the controller is" in unclean
    assert "refused" in " ".join(story_of(history("last-replica-standing"), Path("trials") / "x"))
    assert "not in the ISR" not in " ".join(story_of(history("committed-data"), Path("trials") / "x"))


def test_each_partition_has_its_own_isr_and_only_one_that_is_written_to_has_offsets() -> None:
    written, other = chart("isr-per-partition").partitions
    in_sync = [
        {lane.label: len(lane.bars) for lane in each.lanes if lane.label.endswith("in sync")}
        for each in (written, other)
    ]
    assert sorted(in_sync[0].values()) > [1, 1, 1] == sorted(in_sync[1].values())
    assert (written.plot_y is None, other.plot_y is None) == (False, True)
    assert other.y > written.y + written.height


@pytest.mark.parametrize(("name", "brokers"), [("all-replicas-down", 3), ("controller-race", 5), ("broker-crash", 1)])
def test_only_brokers_count_as_brokers(name: str, brokers: int) -> None:
    scene = build_scene(history(name), intervals_of(history(name)))
    assert [person.name for person in scene.people] == [f"b{number}" for number in range(1, brokers + 1)]


def test_a_link_that_is_cut_has_both_ends() -> None:
    labels = [band.title for band in chart("frozen-isr").bands if "link" in band.title]
    assert labels
    assert all(re.search(r" on b\d–\w+ at ", label) for label in labels)
