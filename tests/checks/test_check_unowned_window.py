"""Unowned windows (O3): by registry and by belief, each against its bound.

With the story's parameters, which know no latency, requests take no time: the registry's bound
is 4 × 500 ms = 2 s, belief's 2 s + 2 × 500 ms more: 5 s. Both allow 2 ms on top.
"""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.unowned_window import CHECK

BOUNDS = {"bound_us": 2_000_000, "belief_bound_us": 5_000_000}


def judge(story: GroupStory) -> Finding:
    return CHECK.judge(story.history())


def _alive(partitions: int = 1, **parameters: Any) -> GroupStory:
    """m1, which reads topic t, has rebalanced at 100 ms: m1 is alive, and both views begin."""
    story = GroupStory(**parameters)
    story.topic(0, "t", partitions)  # zookeeper/0
    story.started(0, "m1")  # m1/0
    story.registers(10, "m1")  # zookeeper/1
    story.rebalanced(100, "m1")  # m1/1
    return story


def _numbers(
    count: int, longest_us: int, total_us: int, longest_belief_us: int, total_belief_us: int
) -> dict[str, int]:
    return {
        "count": count,
        "longest_us": longest_us,
        "total_us": total_us,
        "longest_belief_us": longest_belief_us,
        "total_belief_us": total_belief_us,
        **BOUNDS,
    }


def test_a_partition_that_lost_its_owner_for_too_long_is_violated() -> None:
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.created(4_000, "m1")
    story.phase(6_000, "closing")
    story.rest(6_000)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "t/0 had no owner in the registry for 3.000 s while a member was alive; the bound is 2.000 s",
        (("m1", 1), ("zookeeper", 3), ("zookeeper", 4)),
        _numbers(1, 3_000_000, 3_000_000, 0, 0),
    )


@pytest.mark.parametrize(("back_ms", "outcome"), [(3_002, Outcome.CLEAN), (3_003, Outcome.VIOLATED)])
def test_the_bound_allows_two_milliseconds_more(back_ms: int, outcome: Outcome) -> None:
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.created(back_ms, "m1")
    story.phase(6_000, "closing")
    story.rest(6_000)
    assert judge(story).outcome is outcome


def test_short_windows_are_clean_and_measured() -> None:
    story = _alive(partitions=2)
    for partition in (0, 1):
        story.created(90, "m1", partition)
        story.owned(90, "m1", partition)
        story.disowned(990, "m1", partition)
        story.deleted(1_000 + partition, "m1", partition)
        story.created(1_500, "m1", partition)
        story.owned(1_510, "m1", partition)
    story.phase(6_000, "closing")
    story.rest(6_000)
    assert judge(story) == Finding(
        Outcome.CLEAN,
        "no partition was without an owner for longer than the bound",
        (),
        _numbers(0, 500_000, 999_000, 520_000, 1_040_000),
    )


def test_a_partition_that_nobody_ever_claimed_is_violated_until_closing() -> None:
    story = _alive(partitions=2)
    story.created(90, "m1", 0)
    story.owned(90, "m1", 0)
    closing = story.phase(9_100, "closing")
    story.rest(9_100)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "t/1 had no owner in the registry for 9.000 s while a member was alive; the group was at rest in it",
        (("m1", 1), closing),
        _numbers(2, 9_000_000, 9_000_000, 9_000_000, 9_000_000),
    )


def test_a_partition_that_nobody_believes_to_own_is_violated_though_the_registry_has_an_owner() -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")  # m1/2
    story.disowned(1_000, "m1")  # m1/3
    story.owned(6_003, "m1")  # m1/4
    story.phase(9_000, "closing")
    story.rest(9_000)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "no member believed that it owned t/0 for 5.003 s while a member was alive; the bound is 5.000 s",
        (("m1", 1), ("m1", 3), ("m1", 4)),
        _numbers(1, 0, 0, 5_003_000, 5_003_000),
    )


def test_with_a_drifted_clock_the_registry_s_windows_are_unknown() -> None:
    story = _alive(wall_drift_us=-2_001)
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.created(4_000, "m1")
    story.phase(6_000, "closing")
    story.rest(6_000)
    assert judge(story) == Finding(
        Outcome.UNKNOWN,
        "the wall clock drifted by -2001 us: registry times are not comparable with other times",
        (),
        _numbers(0, 3_000_000, 3_000_000, 0, 0),
    )


def test_with_a_drifted_clock_windows_of_belief_are_what_they_are() -> None:
    """Belief and life are told by one clock; only the registry's windows are not to be trusted."""
    story = _alive(wall_drift_us=2_001)
    story.phase(9_100, "closing")
    story.rest(9_100)
    finding = judge(story)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.startswith("no member believed that it owned t/0 for 9.000 s")
    assert finding.measures == _numbers(1, 9_000_000, 9_000_000, 9_000_000, 9_000_000)


def test_belief_may_be_away_as_long_as_a_dead_member_s_session_and_a_rebalance() -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.disowned(1_000, "m1")
    story.owned(6_002, "m1")
    story.phase(9_000, "closing")
    story.rest(9_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_killed_owner_leaves_belief_at_once_and_the_registry_with_its_session() -> None:
    story = _alive()
    story.started(0, "m2")
    story.registers(150, "m2")
    story.rebalanced(200, "m2")
    story.created(90, "m1")
    story.owned(90, "m1")
    story.killed(1_000, "m1")
    story.deleted(3_000, "m1")
    story.created(3_100, "m2")
    story.owned(3_110, "m2")
    story.phase(9_000, "closing")
    story.rest(9_000)
    finding = judge(story)
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == _numbers(0, 100_000, 100_000, 2_110_000, 2_110_000)


def test_nothing_counts_while_nobody_is_alive() -> None:
    """The only member is killed; another comes back to a group that was dead for a minute."""
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.killed(1_000, "m1")
    story.deleted(3_000, "m1")
    story.started(60_000, "m2")
    story.registers(60_000, "m2")
    story.created(61_000, "m2")
    story.owned(61_000, "m2")
    story.rebalanced(61_001, "m2")
    story.phase(64_000, "closing")
    story.rest(64_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, _numbers(0, 0, 0, 0, 0))


def test_a_member_without_a_successful_rebalance_is_not_alive_yet() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    story.started(0, "m1")
    story.registers(10, "m1")
    story.rebalanced(2_000, "m1", "failed")
    story.rebalanced(8_000, "m1")
    story.created(9_000, "m1")
    story.owned(9_000, "m1")
    story.phase(10_000, "closing")
    story.rest(10_000)
    assert judge(story).measures["longest_us"] == 1_000_000


def test_a_member_is_alive_since_its_first_success_not_its_last() -> None:
    story = _alive()
    story.rebalanced(4_000, "m1")
    story.phase(5_100, "closing")
    story.rest(5_100)
    finding = judge(story)
    assert (finding.witness[0], finding.measures["longest_us"]) == (("m1", 1), 5_000_000)


def test_a_rebalance_of_a_member_that_never_started_makes_nobody_alive() -> None:
    story = GroupStory()
    story.rebalanced(100, "m1")
    story.rest(9_000)
    assert judge(story).outcome is Outcome.UNKNOWN


def test_a_paused_member_counts_as_alive() -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.paused(1_000, 8_000, "m1")
    story.deleted(3_000, "m1")
    story.created(8_100, "m1")
    story.phase(9_000, "closing")
    story.rest(9_000)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (
        Outcome.VIOLATED,
        (("m1", 1), ("zookeeper", 3), ("zookeeper", 4)),
    )


def test_a_window_is_cut_where_the_group_s_last_member_closed() -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.deleted(1_000, "m1")
    story.closed(2_900, "m1")
    story.rest(60_000)
    assert judge(story).measures == _numbers(0, 1_900_000, 1_900_000, 0, 0)


def test_what_begins_in_the_closing_phase_is_no_anomaly() -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.rest(900)
    story.phase(3_000, "closing")
    story.disowned(3_001, "m1")
    story.deleted(3_001, "m1")
    story.closed(60_000, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, _numbers(0, 0, 0, 0, 0))


def test_without_a_closing_phase_the_history_s_end_bounds() -> None:
    story = _alive()
    story.rest(5_100)
    finding = judge(story)
    assert finding.witness == (("m1", 1),)
    assert finding.measures["longest_us"] == 5_000_000


def test_another_topic_s_owners_do_not_count() -> None:
    story = GroupStory()
    story.topic(0, "other", 1)
    story.started(0, "m1")
    story.registers(10, "m1", streams={"other": 1})
    story.rebalanced(100, "m1")
    story.created(90, "m1")
    story.owned(90, "m1")
    story.phase(6_000, "closing")
    finding = judge(story)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.startswith("other/0 had ")


def test_a_history_in_which_no_rebalance_succeeded_is_unknown() -> None:
    story = GroupStory()
    story.started(0, "m1")
    story.rebalanced(4_000, "m1", "failed")
    story.rest(9_000)
    assert judge(story) == Finding(
        Outcome.UNKNOWN, "no rebalance ever succeeded, so no partition was due", (), _numbers(0, 0, 0, 0, 0)
    )


@pytest.mark.parametrize(
    ("rest_ms", "closing_ms", "outcome"),
    [(50, 2_102, Outcome.UNKNOWN), (50, 2_103, Outcome.CLEAN), (900, 2_102, Outcome.CLEAN)],
)
def test_a_group_that_lived_no_longer_than_the_bound_shows_something_only_at_rest(
    rest_ms: int, closing_ms: int, outcome: Outcome
) -> None:
    story = _alive()
    story.created(90, "m1")
    story.owned(90, "m1")
    story.rest(rest_ms)
    story.phase(closing_ms, "closing")
    finding = judge(story)
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert finding.why == "the group was alive for only 2.002 s; the bound is 2.000 s"


def test_a_trial_that_does_not_tell_its_settings_is_unknown() -> None:
    story = _alive(topic=None, tick_ms=None)
    story.rest(9_000)
    assert judge(story) == Finding(Outcome.UNKNOWN, "the trial's parameters lack topic, tick_ms", (), {})


def test_a_rest_of_the_moment_in_which_life_begins_or_ends_is_of_that_life() -> None:
    for rest_ms in (100, 2_102):
        story = _alive()
        story.created(90, "m1")
        story.owned(90, "m1")
        story.rest(rest_ms)
        story.phase(2_102, "closing")
        assert judge(story).outcome is Outcome.CLEAN, rest_ms


def test_the_longest_of_several_windows_is_told() -> None:
    story = _alive(partitions=2)
    for partition in (0, 1):
        story.owned(90, "m1", partition)
        story.created(90, "m1", partition)
    story.deleted(1_000, "m1", 0)
    story.created(4_000, "m1", 0)
    story.deleted(1_500, "m1", 1)
    story.created(5_000, "m1", 1)
    story.phase(6_000, "closing")
    finding = judge(story)
    assert finding.measures["count"] == 2
    assert finding.why.startswith("t/1 had no owner in the registry for 3.500 s ")


def test_the_life_and_the_window_may_end_with_the_last_member() -> None:
    story = _alive()
    closed = story.closed(8_000, "m1")
    assert judge(story).witness == (("m1", 1), closed)


def test_who_never_had_a_rebalance_that_succeeded_ends_no_life() -> None:
    """m2 closes without one; of m3 nobody knows that it started."""
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.started(0, "m2")
    story.closed(1_000, "m2")
    story.closed(1_000, "m3")
    story.rest(9_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_rebalance_that_ends_after_its_member_closed_makes_nobody_alive() -> None:
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.rest(500)
    story.deleted(1_000, "m1")
    story.closed(1_000, "m1")
    story.rebalanced(1_001, "m1")
    story.phase(9_000, "closing")
    assert judge(story).outcome is Outcome.CLEAN


def test_a_partition_without_owner_at_rest_is_violated_however_short() -> None:
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.rest(1_500)
    story.phase(1_600, "closing")
    finding = judge(story)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == (
        "t/0 had no owner in the registry for 0.600 s while a member was alive; the group was at rest in it"
    )


def test_a_window_as_young_as_the_rest_may_belong_to_what_follows() -> None:
    story = _alive()
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_498, "m1")
    story.rest(1_500)
    story.phase(2_600, "closing")
    assert judge(story).outcome is Outcome.CLEAN
