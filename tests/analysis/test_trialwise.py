"""What is worked out of one trial, without Spark: episodes against the oracle of their table on random
histories, and ownership sums and the registry's view by hand."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import msgspec
import pytest
from group_story import GroupStory
from history_story import Story
from stored_trials import random_history
from test_rebalance_episodes_table import oracle

from rebalance_lab.analysis.results import HerdCost
from rebalance_lab.analysis.trialwise.episodes import Window, add_ownership, episodes
from rebalance_lab.analysis.trialwise.rows import herd_costs_of
from rebalance_lab.checks import CHECKS
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


@pytest.mark.parametrize("seed", range(60))
def test_episodes_are_those_of_the_oracle(seed: int) -> None:
    history = random_history(f"t{seed:03}", seed)
    assert [asdict(episode) for episode in episodes(history)] == oracle(history)


def test_a_trial_in_which_nothing_happened_has_no_episode() -> None:
    story = Story()
    story.started(0, "m1")
    story.rest(1000)
    assert episodes(story.history()) == []


@pytest.mark.parametrize(("rules", "writes"), [("real", 1), ("shipped", 5)])
def test_offsets_that_real_members_commit_are_no_writes_of_an_episode(rules: str, writes: int) -> None:
    """Only Kafka's own consumer commits (`checks.operations`); what a member of the lab writes there is a write."""
    story = GroupStory()
    story.joins(0, "m1", rules=rules)
    story.rebalances(10, 20, "m1")
    for ms, path in enumerate(("owners/t/0", "offsets", "offsets/t", "offsets/t/0", "offsets/t/0"), 11):
        story.asks(ms, "m1", "create", f"/consumers/g/{path}")
    story.asks(16, "m1", "get", "/consumers/g/offsets/t/0")
    story.rest(1000)
    (episode,) = episodes(story.history())
    assert (episode.reads, episode.writes) == (1, writes)


# -- ownership sums -----------------------------------------------------------------------------


def interval(member: str, begin_us: int, end_us: int, *, partition: int = 0, group: str = "g") -> Interval:
    return Interval(
        layer=Layer.REGISTRY,
        member=member,
        group=group,
        topic="t",
        partition=partition,
        begin_us=begin_us,
        end_us=end_us,
        begin=(member, begin_us),
        end=None,
    )


def sums(*owned: Interval, since: dict[int, int] | None = None, believed: tuple[Interval, ...] = ()) -> tuple[int, int]:
    """(unowned, doubly owned) from 100 to 200 µs. `since`: partition -> when it was there."""
    window = Window("g", 100, 200)
    places = {"g": {("t", number): at_us for number, at_us in (since or {0: 0}).items()}}
    add_ownership([window], places, owned, believed)
    return window.unowned_us, window.doubly_owned_us


def test_what_nobody_owns_is_unowned() -> None:
    assert sums() == (100, 0)
    assert sums(since={0: 0, 1: 150, 2: 300}) == (150, 0)


def test_an_owner_counts_within_the_window_and_once() -> None:
    assert sums(interval("m1", 50, 120)) == (80, 0)
    assert sums(interval("m1", 180, 900)) == (80, 0)
    assert sums(interval("m1", 110, 150), interval("m2", 130, 160)) == (50, 0)
    assert sums(interval("m1", 110, 160), interval("m2", 120, 140)) == (50, 0)
    assert sums(interval("m1", 10, 100), interval("m1", 200, 300)) == (100, 0)


def test_an_owner_before_its_partition_was_there_owned_nothing() -> None:
    assert sums(interval("m1", 110, 160), since={0: 150}) == (40, 0)


def test_other_groups_and_partitions_are_owned_apart() -> None:
    assert sums(interval("m1", 110, 160, group="h"), interval("m1", 100, 200, partition=1), since={0: 0, 1: 0}) == (
        100,
        0,
    )


def test_each_believer_above_the_first_counts() -> None:
    believed = (interval("m1", 90, 150), interval("m2", 110, 140), interval("m3", 120, 130))
    assert sums(believed=believed) == (100, 40)
    assert sums(believed=(interval("m1", 0, 110), interval("m2", 50, 120))) == (100, 10)


def test_each_window_has_sums_of_its_own() -> None:
    windows = [Window("g", 0, 100), Window("g", 100, 200), Window("h", 0, 50)]
    places = {"g": {("t", 0): 0}, "h": {("t", 0): 20}}
    add_ownership(windows, places, [interval("m1", 60, 130)], [])
    assert [window.unowned_us for window in windows] == [60, 70, 30]


# -- what an episode tells ----------------------------------------------------------------------


def test_the_first_thing_and_the_last_bound_an_episode_that_rested() -> None:
    story = Story()
    story.started(0, "m1")
    story.created_id(10, "m1", "0x1")
    story.member(20, "m1", Kind.REBALANCE_BEGAN)
    story.rebalanced(40, "m1")
    story.rest(1000)
    story.phase(1500, "one more")
    story.created_id(2000, "m2", "0x2")
    story.rest_missed(9000, "m2: it rebalances")
    story.member(9500, "m1", Kind.REBALANCE_TRIGGERED)
    story.phase(9800, "closing")
    found = [
        (one.number, one.part, one.phase, one.begin_us, one.end_us, one.rested) for one in episodes(story.history())
    ]
    assert found == [
        (0, "assembly", "", 10_000, 40_000, True),
        (1, "change", "one more", 2_000_000, 9_000_000, False),
        (2, "change", "one more", 9_500_000, 9_800_000, False),
    ]


# -- herd costs ---------------------------------------------------------------------------------

NUMBERS = ("reads", "writes", "notifications", "rebalances")


@pytest.mark.parametrize("stop_ms", ["0", "100"])
@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_each_row_of_a_trial_says_what_the_check_measured(rules: str, stop_ms: str) -> None:
    history, _ = simulate(make_plan("walkthrough", rules=rules, settings={"fetcher_stop_ms": stop_ms}))
    trial, measures, rows = history.trial, CHECKS["herd_cost"].judge(history).measures, herd_costs_of(history)
    assert measures["changes"] == len(rows) > 0
    for number, row in enumerate(rows, 1):
        name = f"{row.change}_{number}"
        assert (row.trial, row.scenario, row.world, row.rules, row.seed, row.control, row.plant) == (
            *(trial.id, trial.scenario, trial.world, trial.rules, trial.seed, trial.control, trial.plant),
        )
        assert (row.group, row.before, row.retries) == (
            *(trial.parameters["group"], measures[f"{name}_members"], measures[f"{name}_retries"]),
        )
        assert [getattr(row, each) for each in NUMBERS] == [measures[f"{name}_{each}"] for each in NUMBERS]
        expected = [getattr(row, f"expected_{each}") for each in NUMBERS]
        assert expected == [measures.get(f"{name}_expected_{each}") for each in NUMBERS]
        assert row.begin_us < row.end_us
    assert [row.begin_us for row in rows] == sorted(row.begin_us for row in rows)
    assert all(row.members == following.before for row, following in pairwise(rows))
    added = CHECKS["conflict_cost"].judge(history).measures
    assert sum(row.added_reads or 0 for row in rows) == added["added_reads"]
    assert sum(row.added_writes or 0 for row in rows) == added["added_writes"]


def test_the_costs_of_a_change_of_which_nothing_can_be_said() -> None:
    """m2 joins while m1 has not set its watch again; no operation but the setting of that watch is recorded."""
    story = GroupStory(world="processes")
    story.topic(0, "t", 1)
    story.joins(10, "m1")
    story.rebalances(20, 50, "m1")
    story.asks(100, "m1", "children", "/consumers/g/ids", watch=True, zxid=2)
    story.told(500, "m1")
    story.rest(1000)
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2")
    story.rebalances(1120, 1200, "m2")
    story.rest(3000)
    history = story.history()
    trial = msgspec.structs.replace(history.trial, plant="ignore-watch")
    (row,) = herd_costs_of(History(trial, history.events))
    assert row == HerdCost(
        trial="story",
        scenario="story",
        world="processes",
        rules="described",
        seed=1,
        control=True,
        plant="ignore-watch",
        group="g",
        change="join",
        begin_us=1_000_000,
        end_us=3_000_000,
        doubt="g_m1 had not set its watch of /consumers/g/ids again",
        before=1,
        members=2,
        retries=0,
        reads=0,
        writes=0,
        notifications=0,
        rebalances=1,
        expected_reads=None,
        expected_writes=None,
        expected_notifications=None,
        expected_rebalances=None,
        added_reads=None,
        added_writes=None,
    )


def test_a_change_that_no_group_announced_is_of_none() -> None:
    story = GroupStory()
    story.rest(1000)
    story.add(1000, "runner", Kind.PHASE, group=None, detail={"name": "a broker", "change": "broker", "members": 0})
    story.broker(1100, 1)
    story.rest(3000)
    assert [row.group for row in herd_costs_of(story.history())] == [""]


@pytest.mark.parametrize(
    ("ms", "end_us", "begins_us"), [(997.999, 997_999, []), (998, 40_000, [998_000]), (1000, 40_000, [1_000_000])]
)
def test_what_the_registry_tells_of_2_ms_before_a_rest_came_after_it(
    ms: float, end_us: int, begins_us: list[int]
) -> None:
    story = Story()
    story.started(0, "m1")
    story.member(20, "m1", Kind.REBALANCE_BEGAN)
    story.rebalanced(40, "m1")
    story.rest(1000)
    story.created_id(ms, "m2", "0x2")
    story.phase(5000, "closing")
    first, *others = episodes(story.history())
    assert first.end_us == end_us
    assert [episode.begin_us for episode in others] == begins_us


def test_what_the_registry_tells_of_just_before_a_member_s_step_stays_before_it() -> None:
    story = Story()
    story.started(0, "m1")
    story.rest(1000)
    story.created_id(1499, "m2", "0x2")  # the phase had begun, by the runner's clock
    story.phase(1500, "one more")
    story.rest(3000)
    story.created_id(4000, "m3", "0x3")
    story.member(4001, "m1", Kind.REBALANCE_BEGAN)
    story.phase(5000, "closing")
    found = [(episode.phase, episode.begin_us) for episode in episodes(story.history())]
    assert found == [("one more", 1_499_000), ("one more", 4_000_000)]
