"""Orphaned owner (O4): tiny histories, findings in full. With the story's parameters the bound is
2 s for a rebalance and 3 s for expiry."""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId

BOUND_MS = 5_000
NONE = {"count": 0, "unregistered": 0, "unbelieved": 0, "longest_us": 0, "total_us": 0, "bound_us": 5_000_000}


def judge(story: GroupStory) -> Finding:
    return CHECKS["orphan_owner"].judge(story.history())


def owner(**told: Any) -> tuple[GroupStory, EventId]:
    """m1 is registered, owns t/0, and believes it from 110 ms; and the CREATED of the owner znode."""
    story = GroupStory(**told)
    story.topic(0, "t", 1)
    story.joins(10, "m1")
    [claimed] = story.claims(110, "m1", 0)
    story.owned(110, "m1")
    return story, claimed


def test_an_owner_that_is_registered_and_believes_it_is_clean() -> None:
    story, _ = owner()
    story.rest(9_000)
    why = "every owner znode named a registered member that believed that it owned the partition"
    assert judge(story) == Finding(Outcome.CLEAN, why, (), NONE)


@pytest.mark.parametrize(("over_us", "outcome"), [(0, Outcome.CLEAN), (1, Outcome.VIOLATED)])
def test_an_owner_whose_id_has_gone_is_orphaned_after_expiry_and_a_rebalance(over_us: int, outcome: Outcome) -> None:
    """2 ms more, as layers are compared."""
    story, claimed = owner()
    gone = story.goes(1_000, "m1")
    story.disowned(1_000, "m1")
    end_ms = 1_000 + BOUND_MS + 2 + over_us / 1_000
    [deleted] = story.releases(end_ms, "m1", 0)
    story.rest(9_000)
    finding = judge(story)
    assert finding.outcome is outcome
    assert finding.measures["longest_us"] == 5_002_000 + over_us
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (claimed, gone, deleted)
        assert finding.why == (
            "/consumers/g/owners/t/0 named g_m1, which was not registered in its session, for 5.002 s; "
            "the bound is 5.000 s"
        )
        assert (finding.measures["unregistered"], finding.measures["unbelieved"]) == (1, 0)


def test_an_owner_that_is_forgotten_is_orphaned_once_the_group_rests() -> None:
    """However short: nothing is left that would end it (defects F7, F8)."""
    story, claimed = owner()
    forgot = story.disowned(500, "m1")
    rest = story.rest(1_000)
    story.releases(1_500, "m1", 0)
    finding = judge(story)
    assert finding.why == (
        "/consumers/g/owners/t/0 named g_m1, which did not believe that it owned the partition, for 1.000 s; "
        "it still did so at rest"
    )
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (claimed, forgot, rest))
    assert finding.measures == {**NONE, "count": 1, "unbelieved": 1, "longest_us": 1_000_000, "total_us": 1_000_000}


def test_what_was_never_believed_has_no_end_of_belief() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    [claimed] = story.claims(110, "m1", 0)
    rest = story.rest(1_000)
    assert judge(story).witness == (claimed, rest)


def test_in_a_rebalance_it_may_be_so_for_a_while() -> None:
    """Belief begins after the last claim, and ends before the first release."""
    story, _ = owner()
    story.disowned(2_000, "m1")
    story.releases(3_000, "m1", 0)
    story.claims(3_500, "m1", 0)
    story.owned(4_000, "m1")
    story.rest(6_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["total_us"]) == (Outcome.CLEAN, 1_500_000)


@pytest.mark.parametrize(("forgot_ms", "outcome"), [(997.999, Outcome.VIOLATED), (998, Outcome.CLEAN)])
def test_what_begins_within_2_ms_of_a_rest_is_younger_than_it(forgot_ms: float, outcome: Outcome) -> None:
    story, _ = owner()
    story.disowned(forgot_ms, "m1")
    story.rest(1_000)
    story.releases(1_500, "m1", 0)
    assert judge(story).outcome is outcome


def test_a_member_that_came_back_in_another_session_is_not_the_one_that_owned() -> None:
    story, _ = owner()
    story.goes(500, "m1")
    story.registers(600, "m1", session="0x9")
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["unregistered"]) == (Outcome.VIOLATED, 1)


def test_of_a_foreign_member_only_the_registration_is_known() -> None:
    """A real consumer tells nobody what it believes; and who it is, no process recorded."""
    story = GroupStory(recorded=False)
    story.registers(10, "m1")
    story.claims(110, "m1", 0)
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.UNKNOWN, 0)


def test_the_end_of_the_trial_orphans_nobody() -> None:
    story, _ = owner()
    story.rest(1_000)
    story.phase(2_000, "closing")
    story.disowned(2_000, "m1")
    story.goes(2_001, "m1")
    story.releases(20_000, "m1", 0)
    story.rest(30_000)
    assert judge(story) == Finding(Outcome.CLEAN, judge(story).why, (), NONE)


def test_each_znode_of_a_member_is_judged_for_itself() -> None:
    story, _ = owner()
    story.claims(120, "m1", 1)
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 1)
    assert finding.why.startswith("/consumers/g/owners/t/1 ")


# -- what began and ended it ------------------------------------------------------------------


def test_the_longest_of_several_is_told() -> None:
    story, _ = owner()
    story.claims(5_000, "m1", 1)  # for 4 s
    story.disowned(1_000, "m1")  # for 8 s
    story.rest(9_000)
    finding = judge(story)
    assert finding.measures["count"] == 2
    assert finding.why.startswith("/consumers/g/owners/t/0 ")


def test_a_belief_that_comes_too_late_ends_it() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    [claimed] = story.claims(110, "m1", 0)
    believed = story.owned(8_000, "m1")
    story.rest(9_000)
    assert judge(story).witness == (claimed, believed)


def test_a_registration_that_comes_too_late_ends_it() -> None:
    story = GroupStory(recorded=False)
    [claimed] = story.claims(110, "m1", 0)
    registered = story.registers(8_000, "m1")
    story.rest(9_000)
    story.goes(9_100, "m1")
    story.releases(9_100, "m1", 0)
    assert judge(story).witness == (claimed, registered)


def test_the_phase_closing_ends_it() -> None:
    story, claimed = owner()
    forgot = story.disowned(1_000, "m1")
    closing = story.phase(9_000, "closing")
    assert judge(story).witness == (claimed, forgot, closing)


def test_a_release_at_the_moment_of_the_phase_closing_ended_it_before() -> None:
    story, claimed = owner()
    forgot = story.disowned(1_000, "m1")
    story.phase(9_000, "closing")
    [deleted] = story.releases(9_000, "m1", 0)
    assert judge(story).witness == (claimed, forgot, deleted)


@pytest.mark.parametrize(("released_ms", "outcome"), [(1_002, Outcome.CLEAN), (1_002.001, Outcome.VIOLATED)])
def test_what_ends_within_2_ms_after_a_rest_had_ended_before_it(released_ms: float, outcome: Outcome) -> None:
    story, _ = owner()
    story.disowned(500, "m1")
    story.rest(1_000)
    story.releases(released_ms, "m1", 0)
    story.rest(9_000)
    assert judge(story).outcome is outcome


def test_who_registers_and_claims_at_one_moment_is_registered() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    story.claims(10, "m1", 0)
    story.rest(1_000)
    finding = judge(story)
    assert (finding.measures["unregistered"], finding.measures["unbelieved"]) == (0, 1)


# -- doubts -----------------------------------------------------------------------------------


def test_a_registry_without_owners_is_unknown() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the registry never held an owner")


def test_without_its_settings_there_is_no_bound() -> None:
    story, _ = owner(tick_ms=None)
    story.rest(1_000)
    assert judge(story) == Finding(Outcome.UNKNOWN, "the trial's parameters lack tick_ms")


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story, _ = owner(wall_drift_us=2_001)
    story.disowned(500, "m1")
    story.rest(1_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.UNKNOWN, 0)


def test_a_group_that_never_rested_and_was_short_is_unknown() -> None:
    story, _ = owner()
    assert judge(story).outcome is Outcome.UNKNOWN
