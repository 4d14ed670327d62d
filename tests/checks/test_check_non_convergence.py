"""Non-convergence (O6; Z9): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from group_story import GroupStory
from rest_story import two_at_rest

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["non_convergence"]

#: Of a story's settings: a session and two ticks, twice 4 * 500 ms, and 1 s of quiet.
BOUND_MS = 3000 + 2 * 2000 + 1000


def ended(story: GroupStory, ms: float = 20_000) -> GroupStory:
    story.rest(ms)
    story.phase(ms, "closing")
    return story


def numbers(**told: int) -> dict[str, int]:
    kinds = dict.fromkeys(("never_at_rest", "retries_exhausted", "flapping"), 0)
    return {"count": sum(told.get(kind, 0) for kind in kinds), **kinds, "rounds_most": 0, "conflicts": 0, **told}


def test_a_change_that_ends_at_rest() -> None:
    story = two_at_rest()
    story.joins(2000, "m3")
    for actor in ("m1", "m2", "m3"):
        story.rebalances(2010, 2030, actor)
    assert CHECK.judge(ended(story).history()) == Finding(
        Outcome.CLEAN, "every change ended at rest, and no member gave up", (), numbers(rounds_most=1)
    )


def test_nobody_ever_rebalanced() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    finding = CHECK.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no member ever rebalanced")


# -- never at rest ------------------------------------------------------------------------------


def missed(
    ms: float, detail: Mapping[str, object] = MappingProxyType({}), **told: object
) -> tuple[GroupStory, EventId, EventId]:
    """m3 joins at 2000 ms, the last change, and rest is missed at `ms`."""
    story = two_at_rest(**told)
    change = story.joins(2000, "m3")
    return story, change, story.rest_missed(ms, "m3: it rebalances", **detail)


def test_a_group_that_does_not_rest_though_nothing_happens() -> None:
    story, change, rest = missed(2000 + BOUND_MS + 0.001)
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "the group was not at rest 8.000 s after the last change: m3: it rebalances; the bound is 8.000 s",
        (change, rest),
        numbers(never_at_rest=1),
    )


def test_within_the_bound_it_may_still_come_to_rest() -> None:
    story, _, _ = missed(2000 + BOUND_MS)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "rest was missed: m3: it rebalances")


@pytest.mark.parametrize(
    ("at_rest", "outcome"), [(False, Outcome.VIOLATED), (True, Outcome.UNKNOWN)], ids=["busy", "at rest"]
)
def test_a_runner_that_gave_up_shows_it_only_of_a_busy_group(at_rest: bool, outcome: Outcome) -> None:
    """It may have waited for something else than the group: for a fault."""
    story, _, _ = missed(2000 + BOUND_MS + 1, {"gave_up": True, "at_rest": at_rest})
    assert CHECK.judge(story.history()).outcome is outcome


def test_a_group_that_is_taken_down_need_not_rest() -> None:
    story = two_at_rest()
    story.phase(1500, "closing")
    story.member(2000, "m2", Kind.MEMBER_CLOSING)
    story.rest_missed(2000 + BOUND_MS + 1, "m2 did not leave", gave_up=True, at_rest=False)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("kind", [Kind.MEMBER_CLOSING, Kind.MEMBER_STARTED])
def test_what_is_done_to_the_group_begins_the_time_anew(kind: Kind) -> None:
    story, _, _ = missed(2000 + BOUND_MS + 1000)
    story.member(4000, "m2" if kind is Kind.MEMBER_CLOSING else "m9", kind)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


def test_a_topic_a_session_and_a_fault_begin_it_anew() -> None:
    for what in ("topic", "session", "fault"):
        story, _, _ = missed(2000 + BOUND_MS + 1000)
        if what == "topic":
            story.topic(4000, "t", 9, Kind.CHANGED)
        elif what == "session":
            story.session_closed(4000, "0x2")
        else:
            story.paused(2100, 4000, "m1")
        assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN, what


def test_while_a_fault_is_under_way_nobody_can_rest() -> None:
    story, _, _ = missed(2000 + BOUND_MS + 1000)
    began = story.fault(2000, "pause", "m1")
    story.bit(2000, "pause", "m1", began)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


def test_without_settings_there_is_no_bound() -> None:
    story, _, _ = missed(2000 + BOUND_MS + 1000, tick_ms=None)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


def test_a_change_of_the_moment_in_which_rest_is_missed_begins_it_anew() -> None:
    for what in ("topic", "session"):
        story, _, _ = missed(2000 + BOUND_MS + 1000)
        if what == "topic":
            story.topic(2000 + BOUND_MS + 1000, "t", 9, Kind.CHANGED)
        else:
            story.session_closed(2000 + BOUND_MS + 1000, "0x2")
        assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN, what


def test_a_member_that_writes_its_id_again_in_one_session_changes_nothing_from_outside() -> None:
    story, change, rest = missed(2000 + BOUND_MS + 1000)
    story.deleted_id(4000, "m3", "0x3")
    story.registers(4100, "m3")
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change, rest))


@pytest.mark.parametrize("what", ["end", "session", "topic"])
def test_the_end_of_its_session_another_one_and_every_change_of_a_topic_are_from_outside(what: str) -> None:
    story, _, _ = missed(2000 + BOUND_MS + 1000)
    if what == "end":
        story.goes(4000, "m3")
    elif what == "session":
        story.registers(4000, "m3", session="0x9")
    else:
        story.topic(1000, "t", 1)
        story.topic(4000, "t", 9, Kind.CHANGED)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


def test_what_explains_most_is_told_first() -> None:
    story = two_at_rest()
    for number in range(4):
        story.rebalances(3000 + 100 * number, 3050 + 100 * number, "m1", "failed")
    finding = CHECK.judge(ended(story).history())
    assert (finding.measures["retries_exhausted"], finding.measures["flapping"]) == (4, 1)
    assert "gave up" in finding.why


def test_the_last_of_several_changes_counts() -> None:
    story, _, _ = missed(2000 + BOUND_MS + 1000)
    last = story.joins(2500, "m4")
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.witness[0]) == (Outcome.VIOLATED, last)


def test_where_nothing_was_ever_done_there_is_no_change_to_rest_from() -> None:
    story = GroupStory()
    story.rest_missed(2000 + BOUND_MS, "nobody came")
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


# -- retries exhausted --------------------------------------------------------------------------


def test_a_member_that_gave_up_stands_at_rest_with_nothing() -> None:
    story = two_at_rest()
    story.joins(2000, "m3")
    began = story.begins(2010, "m3")
    story.fails(2020, "m3", conflicts=[0])
    gave_up = story.ends(4010, "m3", "failed", attempts=4)
    rest = story.rest(6000)
    assert CHECK.judge(ended(story).history()) == Finding(
        Outcome.VIOLATED,
        "g_m3 gave up after 4 attempts, and owned nothing at the next rest",
        (began, gave_up, rest),
        numbers(retries_exhausted=1, rounds_most=1, conflicts=1),
    )


@pytest.mark.parametrize(("rest_ms", "again_ms", "stood"), [
    (4010, None, True), (6000, 6000, False), (6000, 6000.001, True),
])  # fmt: skip
def test_it_stands_at_rest_unless_it_rebalances_by_then(rest_ms: float, again_ms: float | None, stood: bool) -> None:
    story = two_at_rest()
    story.joins(2000, "m3")
    story.begins(2010, "m3")
    story.ends(4010, "m3", "failed", attempts=4)
    rest = story.rest(rest_ms)
    if again_ms is not None:
        story.rebalances(again_ms, 6500, "m3")
    finding = CHECK.judge(ended(story).history())
    assert (rest in finding.witness, finding.why.endswith("owned nothing at the next rest")) == (stood, stood)


def test_one_that_gave_up_and_was_called_again_gave_up_all_the_same() -> None:
    story = two_at_rest()
    story.joins(2000, "m3")
    began = story.begins(2010, "m3")
    gave_up = story.ends(4010, "m3", "failed", attempts=4)
    story.rebalances(5000, 5010, "m3")
    finding = CHECK.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m3 gave up after 4 attempts")
    assert finding.witness == (began, gave_up)


@pytest.mark.parametrize(
    ("again_ms", "rests", "outcome"),
    [
        (2500, True, Outcome.CLEAN),  # mended before the group first rested
        (3500, True, Outcome.VIOLATED),
        (None, True, Outcome.VIOLATED),
        (2500, False, Outcome.UNKNOWN),
        (None, False, Outcome.VIOLATED),
    ],
)
def test_while_a_group_is_assembled_only_what_is_not_mended_counts(
    again_ms: float | None, rests: bool, outcome: Outcome
) -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.rebalances(10, 2000, "m1", "failed")
    if again_ms is not None:
        story.rebalances(again_ms, again_ms + 10, "m1")
    if rests:
        story.rest(3000)
    story.phase(9000, "closing")
    assert CHECK.judge(story.history()).outcome is outcome


def test_who_gives_up_at_the_moment_of_the_first_rest_may_be_mended_then() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.rebalances(10, 3000, "m1", "failed")
    story.rebalances(3000, 3010, "m1")
    story.rest(3000)
    assert CHECK.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_each_rebalance_of_a_member_is_looked_at() -> None:
    """One that failed and was mended before the first rest, one that went well, one that failed."""
    story = GroupStory()
    story.joins(0, "m1")
    story.rebalances(10, 500, "m1", "failed")
    story.rebalances(600, 700, "m1")
    story.rest(1000)
    story.rebalances(2000, 2100, "m1", "failed")
    assert CHECK.judge(ended(story).history()).measures["retries_exhausted"] == 1


def test_who_gives_up_at_the_moment_of_the_phase_closing_gave_up_before() -> None:
    story = ended(two_at_rest(), 3000)
    story.rebalances(2500, 3000, "m1", "failed")
    assert CHECK.judge(story.history()).outcome is Outcome.VIOLATED


def test_who_gives_up_because_it_leaves_did_not_fail() -> None:
    story = two_at_rest()
    story.begins(2000, "m1")
    story.ends(2500, "m1", "shutdown")
    assert CHECK.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_what_fails_while_the_group_is_taken_down_is_not_looked_at() -> None:
    story = ended(two_at_rest(), 3000)
    story.rebalances(3010, 5000, "m1", "failed")
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


# -- flapping -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "changes", "outcome"), [
    (3, 0, Outcome.CLEAN), (4, 0, Outcome.VIOLATED), (3, 1, Outcome.CLEAN), (4, 1, Outcome.VIOLATED),
    (6, 2, Outcome.CLEAN), (7, 2, Outcome.VIOLATED),
])  # fmt: skip
def test_three_rounds_for_each_change_and_no_more(rounds: int, changes: int, outcome: Outcome) -> None:
    story = two_at_rest()
    for number in range(changes):
        story.joins(2000 + number, f"m{7 + number}")
    last = [story.rebalances(3000 + 100 * number, 3050 + 100 * number, "m1") for number in range(rounds)][-1]
    finding = CHECK.judge(ended(story).history())
    assert (finding.outcome, finding.measures["rounds_most"]) == (outcome, rounds)
    if outcome is Outcome.VIOLATED:
        assert finding.why == f"g_m1 rebalanced {rounds} times between two rests, for {changes} changes"
        assert finding.witness == (("runner", 0), last, ("runner", 1))


def test_a_change_that_the_registry_tells_of_2_ms_too_early_counts_after_the_rest() -> None:
    story = two_at_rest()
    story.goes(998, "m1")
    story.registers(2000, "m1")
    for number in range(4):
        story.rebalances(3000 + 100 * number, 3050 + 100 * number, "m1")
    assert CHECK.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_the_assembling_is_no_flapping() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    for number in range(9):
        story.rebalances(100 * number, 100 * number + 50, "m1")
    assert CHECK.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_rounds_after_the_last_rest_are_of_no_stretch_between_two() -> None:
    story = two_at_rest()
    for number in range(9):
        story.rebalances(2000 + 100 * number, 2050 + 100 * number, "m1")
    story.phase(9000, "closing")
    assert CHECK.judge(story.history()).measures["rounds_most"] == 0
