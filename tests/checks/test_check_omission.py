"""Omission (O5): tiny histories, findings in full."""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


def judge(story: GroupStory) -> Finding:
    return CHECKS["omission"].judge(story.history())


def group(*claims: tuple[str, int], partitions: int = 2, **told: Any) -> GroupStory:
    """m1 and m2 are registered for topic t; claims at 100 ms."""
    story = GroupStory(**told)
    story.topic(0, "t", partitions)  # zookeeper/0
    story.joins(10, "m1")
    story.joins(20, "m2")
    for actor, partition in claims:
        story.claims(100, actor, partition)  # zookeeper/3, …
    return story


def test_one_owner_for_each_partition_is_clean() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.rest(1_000)
    assert judge(story) == Finding(
        Outcome.CLEAN,
        "at every rest each partition had one live owner that subscribes to its topic",
        (),
        {"count": 0, "unowned": 0, "foreign": 0, "rests": 1, "partitions": 2},
    )


def test_a_partition_without_owner_at_rest_is_violated() -> None:
    story = group(("m1", 0), ("m2", 1), partitions=3)
    [released] = story.releases(500, "m2", 1)
    rest = story.rest(1_000)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "t/1 had no owner at rest (and 1 more partitions then)",
        (released, rest),
        {"count": 2, "unowned": 2, "foreign": 0, "rests": 1, "partitions": 3},
    )


def test_of_one_that_never_had_an_owner_the_topic_is_the_witness() -> None:
    story = group(("m1", 0))
    rest = story.rest(1_000)
    assert judge(story).witness == (("zookeeper", 0), rest)


def test_between_rests_it_may_be_unowned() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.rest(1_000)
    story.releases(2_000, "m2", 1)
    story.claims(6_000, "m1", 1)
    story.rest(8_000)
    assert judge(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("claimed_ms", "outcome"), [(998, Outcome.CLEAN), (998.001, Outcome.VIOLATED)])
def test_what_is_done_within_2_ms_of_a_rest_came_after_it(claimed_ms: float, outcome: Outcome) -> None:
    """A quiet time goes before a rest."""
    story = group(("m1", 0))
    story.claims(claimed_ms, "m2", 1)
    story.rest(1_000)
    assert judge(story).outcome is outcome


def test_an_owner_that_does_not_subscribe_is_foreign() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.joins(30, "m3", streams={"u": 1})
    [claimed] = story.claims(200, "m3", 2)
    story.topic(250, "t", 3, Kind.CHANGED)
    rest = story.rest(1_000)
    finding = judge(story)
    assert finding.why == "g_m3 owned t/2 at rest, but is not a member that subscribes to t"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (claimed, rest))
    assert finding.measures["foreign"] == 1


def test_an_owner_of_what_does_not_exist_is_foreign() -> None:
    story = group(("m1", 0), ("m2", 1), ("m2", 7))
    story.rest(1_000)
    assert judge(story).why == "g_m2 owned t/7 at rest, but is not a member that subscribes to t"


def test_an_owner_whose_id_has_gone_is_foreign() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.goes(500, "m2")
    story.rest(1_000)
    assert judge(story).measures["foreign"] == 1


def test_a_killed_member_subscribes_to_nothing_though_its_id_lingers() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.killed(500, "m2")
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["foreign"]) == (Outcome.VIOLATED, 1)


def test_one_that_leaves_at_the_moment_of_the_rest_was_there() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.closed(1_000, "m1")
    story.rest(1_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_name_lives_while_one_process_of_it_does() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.add(300, "m9", Kind.MEMBER_STARTED, member="g_m1")
    story.add(500, "m9", Kind.MEMBER_CLOSED, member="g_m1")
    story.rest(1_000)
    assert judge(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("pattern", "streams", "unowned"),
    [
        ("white_list", {"u.*": 1}, 1),
        ("white_list", {"t|u": 1}, 1),
        ("white_list", {"u,v": 1}, 1),
        ("black_list", {"t": 1}, 1),
        ("black_list", {"t|u.*": 1}, 0),
        ("white_list", {"T|U": 1}, 0),
    ],
)
def test_a_filter_means_the_topics_that_it_takes(pattern: str, streams: dict[str, int], unowned: int) -> None:
    story = group(("m1", 0), ("m2", 1))
    story.topic(5, "u1" if "u.*" in str(streams) else "u", 1)
    story.topic(6, "__consumer_offsets", 1)
    story.joins(30, "m3", streams=streams, pattern=pattern)
    story.rest(1_000)
    assert judge(story).measures["unowned"] == unowned


def test_groups_are_judged_apart() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.joins(30, "m3", group="h")
    story.claims(200, "m3", 0, group="h")
    story.rest(1_000)
    finding = judge(story)
    assert finding.measures == {"count": 1, "unowned": 1, "foreign": 0, "rests": 1, "partitions": 4}


def test_a_topic_that_nobody_wants_needs_no_owner() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.topic(50, "u", 4)
    story.rest(1_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_rests_of_the_end_are_not_looked_at() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.rest(1_000)
    story.phase(2_000, "closing")
    story.releases(2_500, "m1", 0)
    story.rest(3_000)
    assert judge(story).measures["rests"] == 1


# -- doubts -----------------------------------------------------------------------------------


def test_a_group_of_nobody_is_unknown() -> None:
    story = GroupStory()
    story.topic(0, "t", 2)
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "at no rest was a member subscribed to a partition")


def test_a_group_that_never_rested_is_unknown() -> None:
    assert judge(group(("m1", 0))).outcome is Outcome.UNKNOWN


def test_a_change_that_no_rest_followed_leaves_it_open() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.rest(1_000)
    story.joins(2_000, "m3")
    story.phase(3_000, "closing")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no rest followed the change of /consumers/g/ids/g_m3")


def test_a_change_of_the_end_needs_no_rest() -> None:
    story = group(("m1", 0), ("m2", 1))
    story.rest(1_000)
    story.phase(2_000, "closing")
    story.goes(1_999, "m1")  # by the server's clock
    assert judge(story).outcome is Outcome.CLEAN


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = group(("m1", 0), wall_drift_us=2_001)
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.UNKNOWN, 0)


def test_a_fault_that_did_not_bite_leaves_it_open_unless_it_is_seen() -> None:
    sound = group(("m1", 0), ("m2", 1))
    sound.fault(500, "pause", "m1")
    sound.rest(1_000)
    assert judge(sound).outcome is Outcome.UNKNOWN
    broken = group(("m1", 0))
    broken.fault(500, "pause", "m1")
    broken.rest(1_000)
    assert judge(broken).outcome is Outcome.VIOLATED


def test_subscriptions_that_cannot_be_read_leave_it_open() -> None:
    story = group(("m1", 0), ("m2", 1))
    for actor in ("m4", "m3"):
        story.joins(300, actor, streams={"a(": 1}, pattern="white_list")
    story.rest(1_000)
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "the topics that g_m3, g_m4 subscribed to cannot be read"
