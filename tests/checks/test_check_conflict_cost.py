"""Conflicts (Z7c): what they add, how they are recognised, and conflicts that are invented."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from test_check_herd_cost import READS, WRITES, one_at_rest

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.change_costs import cost_comparisons
from rebalance_lab.history.events import Kind

HERD, CONFLICT = CHECKS["herd_cost"], CHECKS["conflict_cost"]

#: Of an attempt that wants one partition and loses it: 2B + C + T + p + 6 reads, and one more to look.
FAILED = 2 + 2 + 1 + 1 + 6 + 1


def conflicted(
    *,
    refused: int = 1,
    refused_ms: float = 1150,
    lost: int = 0,
    reads: int = FAILED,
    writes: int = 1,
    released_ms: float = 1200,
) -> GroupStory:
    """m2 joins, and its attempt from 1120 to 1160 ms meets m1's owner znode, which m1 deletes."""
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    story.begins(1120, "m2")
    story.decides(1140, "m2", [0])
    for _ in range(refused):
        story.refused(refused_ms, "m2")
    story.releases(released_ms, "m1", 0)
    story.fails(1160, "m2", conflicts=[lost])
    story.rebalances(1120, 1300, "m1")
    story.attempts(1660, "m2")
    story.claims(1680, "m2", 0)
    story.ends(1700, "m2", attempts=2)
    story.counted(1800, "m1", get=READS + reads, create=WRITES - 1 + writes, delete=1)
    story.counted(1800, "m2", get=0)
    story.rest(3000)
    return story


def test_what_a_conflict_adds_is_measured_and_not_expected() -> None:
    (comparison,) = cost_comparisons(conflicted().history())
    assert (comparison.expected.reads, comparison.added_reads, comparison.added_writes) == (READS, FAILED, 1)
    assert (comparison.accounted_reads, comparison.accounted_writes) == (FAILED, 1)
    assert comparison.added_percent == round(100 * FAILED / READS)


def test_the_plain_formula_is_refuted_by_a_conflict() -> None:
    why = (
        "a join in a group of 1 cost 13 reads and 1 writes more than the formulas say (43 %); "
        "1 attempts met conflicts and account for 13 reads and 1 writes"
    )
    numbers = {"count": 1, "changes": 1, "conflicted": 1, "retries": 1, "added_reads": 13, "added_writes": 1}
    numbers |= {"accounted_reads": 13, "accounted_writes": 1, "most_percent": 43}
    witness = (("runner", 1), ("runner", 2))
    assert CONFLICT.judge(conflicted().history()) == Finding(Outcome.VIOLATED, why, witness, numbers)


def test_a_change_with_conflicts_is_not_held_against_the_formula_without() -> None:
    finding = HERD.judge(conflicted().history())
    assert (finding.outcome, finding.measures["compared"], finding.measures["retries"]) == (Outcome.CLEAN, 0, 1)
    assert finding.why == ("1 spaced changes cost what the formulas say, except 1 with conflicts (see conflict_cost)")


@pytest.mark.parametrize(("reads", "writes"), [(FAILED + 1, 1), (FAILED - 1, 1), (FAILED, 2)])
def test_nothing_hides_among_the_costs_of_a_conflict(reads: int, writes: int) -> None:
    finding = HERD.judge(conflicted(reads=reads, writes=writes).history())
    assert finding.outcome is Outcome.VIOLATED
    assert "above the formula" in finding.why


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (conflicted(refused=0), "g_m2 reported 1 conflicts in one attempt, but ZooKeeper refused 0 creates"),
        (conflicted(released_ms=1110), "g_m2 reported a conflict over t/0, which no other member owned"),
        (conflicted(lost=7), "g_m2 reported a conflict over t/7, which it had not decided to claim"),
    ],
)
def test_an_invented_conflict_is_a_violation(story: GroupStory, why: str) -> None:
    finding = HERD.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == f"a join in a group of 1 has a conflict that the registry contradicts: {why}"


@pytest.mark.parametrize(
    ("refused_ms", "released_ms", "witnessed"),
    [
        (1118, 1200, True),
        (1117.999, 1200, False),
        (1162, 1200, True),
        (1162.001, 1200, False),
        (1150, 1118, True),
        (1150, 1117.999, False),
    ],
)
def test_what_witnesses_a_conflict_happens_during_the_attempt(
    refused_ms: float, released_ms: float, witnessed: bool
) -> None:
    """2 ms either way, as layers are compared."""
    (comparison,) = cost_comparisons(conflicted(refused_ms=refused_ms, released_ms=released_ms).history())
    assert [each.contradicted is None for each in comparison.conflicts] == [witnessed]


@pytest.mark.parametrize(("again_ms", "witnessed"), [(1162, True), (1162.001, False)])
def test_an_owner_that_comes_as_the_attempt_fails_witnesses_it(again_ms: float, witnessed: bool) -> None:
    story = conflicted(released_ms=1110)
    story.claims(again_ms, "m1", 0)
    (comparison,) = cost_comparisons(story.history())
    assert [each.contradicted is None for each in comparison.conflicts] == [witnessed]


def test_a_refusal_for_another_reason_witnesses_no_conflict() -> None:
    story = conflicted(refused=0)
    story.refused(1150, "m2", code=-101)
    assert HERD.judge(story.history()).outcome is Outcome.VIOLATED


def test_a_conflict_that_names_no_partition_is_a_violation() -> None:
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    story.rebalances(1120, 1200, "m1")
    story.begins(1120, "m2")
    story.fails(1160, "m2")
    story.attempts(1660, "m2")
    story.ends(1700, "m2")
    story.rest(3000)
    assert (
        "a join in a group of 1 has a conflict that the registry contradicts: "
        "g_m2 reported a conflict without a partition" in HERD.judge(story.history()).why
    )


def test_without_conflicts_nothing_is_above() -> None:
    story = one_at_rest()
    story.counted(900, "m1", get=1)
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.rest(3000)
    finding = CONFLICT.judge(story.history())
    assert (finding.outcome, finding.measures["changes"], finding.measures["conflicted"]) == (Outcome.CLEAN, 1, 0)


def test_a_change_that_cannot_be_compared_leaves_it_open() -> None:
    story = one_at_rest()
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.rest(3000)
    finding = CONFLICT.judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the operations of g_m1 are not recorded")


def test_a_change_that_does_not_come_to_rest_leaves_it_open() -> None:
    story = conflicted(reads=0, writes=0)
    story.announces(4000, "a broker comes", change="broker", members=2)
    story.broker(4100, 1)
    story.rest_missed(6000, "m1: it rebalances")
    finding = CONFLICT.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "rest was missed: m1: it rebalances; a spaced change did not come to rest"


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = conflicted()
    story._wall_drift_us = 2_001
    assert CONFLICT.judge(story.history()).outcome is Outcome.UNKNOWN
    assert HERD.judge(story.history()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("reads", "writes"), [(1, 0), (0, 1)])
def test_one_read_or_one_write_above_the_formula_is_above(reads: int, writes: int) -> None:
    finding = CONFLICT.judge(conflicted(reads=reads, writes=writes).history())
    assert (finding.outcome, finding.measures["added_reads"], finding.measures["added_writes"]) == (
        *(Outcome.VIOLATED, reads, writes),
    )


def test_a_conflict_that_cost_nothing_is_clean() -> None:
    finding = CONFLICT.judge(conflicted(reads=0, writes=0).history())
    assert finding.outcome is Outcome.CLEAN
    assert finding.why == "none of 1 spaced changes cost more reads or writes than the formulas say"
    assert (finding.measures["most_percent"], finding.measures["added_reads"]) == (0, 0)


def test_what_was_not_recorded_adds_nothing_that_is_known() -> None:
    story = conflicted()
    story.events = [event for event in story.events if event.kind is not Kind.OPERATIONS]
    (comparison,) = cost_comparisons(story.history())
    assert comparison.incomparable
    assert (comparison.added_reads, comparison.added_writes, comparison.added_percent) == (None, None, 0)


def test_a_conflict_names_the_attempt_that_failed() -> None:
    story = conflicted()
    failed = next(event for event in story.events if event.kind is Kind.ATTEMPT_FAILED)
    (comparison,) = cost_comparisons(story.history())
    assert [each.attempt.failed.id for each in comparison.conflicts if each.attempt.failed] == [failed.id]


def test_where_no_change_was_announced_it_does_not_apply() -> None:
    assert CONFLICT.applies(conflicted().history())
    assert not CONFLICT.applies(one_at_rest().history())


@pytest.mark.parametrize(("reads", "reported"), [(FAILED - 1, "join"), (FAILED + 1, "broker")])
def test_the_change_that_added_most_reads_is_reported(reads: int, reported: str) -> None:
    """As shipped nobody rebalances for a broker: all that is read then is above the formulas."""
    story = conflicted()
    story.announces(4000, "a broker comes", change="broker", members=2)
    story.broker(4100, 1)
    story.counted(4500, "m1", get=reads)
    story.rest(6000)
    finding = CONFLICT.judge(story.history())
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 2)
    assert finding.why.startswith(f"a {reported} in a group of ")
