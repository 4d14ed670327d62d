"""Churn (O8): tiny histories, findings in full."""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome

NONE = {"count": 0, "moved": 0, "minimum": 0, "interrupted": 0, "changes": 0}


def judge(story: GroupStory, end_ms: float = 5_000) -> Finding:
    story.rest(end_ms)
    return CHECKS["churn"].judge(story.history())


def settled(owners: str, **told: Any) -> GroupStory:
    """Of `owners` each digit is who owns the partition at that place; members 1 to 3 rest at 1 s."""
    story = GroupStory(**told)
    story.topic(0, "t", len(owners))
    for number in (1, 2, 3):
        story.joins(10 * number, f"m{number}")
    for partition, owner in enumerate(owners):
        story.claims(100, f"m{owner}", partition)
    story.rest(1_000)
    return story


def move(story: GroupStory, before: str, after: str) -> None:
    """Everybody gives up what another has afterwards, and that one takes it; a dot: nobody."""
    pairs = [(number, *pair) for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    for partition, former, _ in pairs:
        if former != ".":
            story.releases(2_000, f"m{former}", partition)
    for partition, _, owner in pairs:
        if owner != ".":
            story.claims(3_000, f"m{owner}", partition)


def test_where_nothing_changes_nothing_moves() -> None:
    why = "no more partitions moved than necessary, and no ownership was interrupted"
    assert judge(settled("1122")) == Finding(Outcome.CLEAN, why, (), NONE)


def test_only_what_had_to_move_is_clean() -> None:
    story = settled("1122")
    story.joins(1_500, "m4")
    move(story, "1122", "1423")
    assert judge(story).measures == {**NONE, "moved": 2, "minimum": 2, "changes": 1}
    assert judge(story).outcome is Outcome.CLEAN


def test_what_moves_from_one_that_stays_to_another_and_back_again_is_needless() -> None:
    """Two members change places: none had to."""
    story = settled("12")
    move(story, "12", "21")
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "0 changes moved 2 partitions (minimum: 0) and interrupted 0 ownerships",
        (("zookeeper", 4), ("zookeeper", 8)),
        {**NONE, "count": 2, "moved": 2},
    )


@pytest.mark.parametrize(
    ("before", "after", "moved", "minimum"),
    [
        ("1122", "1133", 2, 2),  # 2 has gone, 3 takes what it had
        ("111222", "113322", 2, 2),  # by two numbers less for 1 and 2 is the least
        ("111222", "112233", 3, 2),  # a range shifts what could have stayed
        ("112233", "111222", 3, 2),
        ("11..", "1122", 0, 0),  # what nobody owned moves from nobody
        ("1122", "11..", 0, 0),
        ("12..", "2111", 2, 0),  # 1 gains what nobody had; the swap was needless
    ],
)
def test_the_least_that_had_to_move(before: str, after: str, moved: int, minimum: int) -> None:
    story = settled(before.replace(".", ""))
    move(story, before, after)
    measures = judge(story).measures
    assert (measures["moved"], measures["minimum"]) == (moved, minimum)


def test_what_its_owner_gives_up_and_takes_again_was_interrupted() -> None:
    story = settled("12")
    [released] = story.releases(2_000, "m1", 0)
    [claimed] = story.claims(2_500, "m1", 0)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "0 changes moved 0 partitions (minimum: 0) and interrupted 1 ownerships",
        (released, claimed),
        {**NONE, "count": 1, "interrupted": 1},
    )


def test_what_another_had_meanwhile_was_not_given_back() -> None:
    story = settled("12")
    story.releases(2_000, "m1", 0)
    story.claims(2_100, "m3", 0)
    story.releases(2_200, "m3", 0)
    story.claims(2_300, "m1", 0)
    assert judge(story).measures["interrupted"] == 0


def test_the_witness_of_a_needless_move_is_of_one_whose_owner_stayed() -> None:
    """m1 has left, so what it had must move; m2 is still there, and lost 1 all the same."""
    story = settled("1233")
    story.goes(1_500, "m1")
    move(story, "1233", "2323")
    finding = judge(story)
    assert (finding.measures["moved"], finding.measures["minimum"]) == (3, 1)
    assert finding.witness[0] == ("zookeeper", 5), "the CREATED of m2's t/1"


def test_changes_of_members_topics_and_brokers_are_counted() -> None:
    story = settled("12")
    story.joins(2_000, "m4")
    story.topic(2_100, "u", 1)
    story.broker(2_200, 7)
    assert judge(story).measures["changes"] == 3


def test_the_assembling_and_the_end_are_not_judged() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    story.joins(10, "m1")
    story.claims(20, "m1", 0)
    story.releases(30, "m1", 0)
    story.claims(40, "m1", 0)
    story.rest(1_000)
    story.phase(2_000, "closing")
    story.releases(2_010, "m1", 0)
    story.claims(2_020, "m1", 0)
    assert judge(story) == Finding(Outcome.CLEAN, judge(story).why, (), NONE)


def test_what_comes_within_2_ms_of_the_end_may_be_of_it() -> None:
    for claimed_ms, interrupted in ((1_998, 1), (1_998.001, 0)):
        story = settled("12")
        story.releases(1_500, "m1", 0)
        story.claims(claimed_ms, "m1", 0)
        story.phase(2_000, "closing")
        assert judge(story).measures["interrupted"] == interrupted


def test_it_is_a_statement_that_controls_may_refute() -> None:
    assert CHECKS["churn"].statement


def test_a_group_that_never_rested_is_unknown() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    finding = CHECKS["churn"].judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "the group never came to rest; the group never came to rest, so no change was looked at"


def test_a_change_that_no_rest_followed_leaves_it_open() -> None:
    story = settled("12")
    story.joins(2_000, "m4")
    story.phase(3_000, "closing")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no rest followed the change of /consumers/g/ids/g_m4")


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = settled("12", wall_drift_us=2_001)
    move(story, "12", "21")
    assert judge(story).outcome is Outcome.UNKNOWN


def test_what_moves_in_a_group_that_never_rested_is_not_counted() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    story.claims(20, "m1", 0)
    story.releases(30, "m1", 0)
    story.claims(40, "m1", 0)
    assert CHECKS["churn"].judge(story.history()).measures == NONE


def test_the_witness_is_of_the_first_step_with_a_needless_move() -> None:
    story = settled("1122")
    story.goes(1_500, "m2")
    move(story, "1122", "1133")  # which had to be
    story.rest(4_000)
    story.releases(5_000, "m1", 0)
    story.releases(5_000, "m3", 2)
    [first, _] = [*story.claims(6_000, "m3", 0), *story.claims(6_000, "m1", 2)]
    finding = judge(story, 9_000)
    assert (finding.measures["moved"], finding.measures["minimum"]) == (4, 2)
    assert finding.witness[1] == first
