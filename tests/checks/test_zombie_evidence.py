"""Zombies (Z10): what shows that a member worked on, and whose session ended for which fault."""

from __future__ import annotations

import pytest
from outlived_story import judge, paused, two, works, zombie_of

from rebalance_lab.checks import Outcome
from rebalance_lab.history.events import Kind


@pytest.mark.parametrize(("until_ms", "outcome"), [(2_997.999, Outcome.CLEAN), (2_998, Outcome.UNKNOWN)])
def test_it_is_one_from_2_ms_before_the_registry_says_so(until_ms: float, outcome: Outcome) -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    works(story, "m2", 2_000, 3_500)
    works(story, "m1", 2_900, until_ms)  # the only report since
    assert judge(story).outcome is outcome


def test_reports_of_less_than_a_period_since_its_session_ended_may_be_late() -> None:
    """At a stop it reports what it did before."""
    for more, outcome in (([], Outcome.UNKNOWN), ([5_051, 5_097], Outcome.UNKNOWN), ([5_100], Outcome.VIOLATED)):
        story = two()
        paused(story)
        works(story, "m2", 3_200, 6_000)
        story.worked("m1", 5_050, *more)
        story.member(5_120, "m1", Kind.WORKED, topic="t", partition=0, detail={"last": True})
        finding = judge(story)
        assert finding.outcome is outcome
        if not more:
            told = (
                "g_m1 reported work on t/0 for less than a work period after its session ended: the reports may be late"
            )
            assert finding.why == told
            assert (finding.measures["count"], finding.measures["zombies"]) == (0, 1)


def test_two_reports_of_one_moment_are_one() -> None:
    story = two()
    paused(story)
    works(story, "m2", 3_200, 6_000)
    story.worked("m1", 5_050, 5_050)
    assert judge(story).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("target", "outcome"), [("m2", Outcome.UNKNOWN), ("m1", Outcome.VIOLATED)])
def test_where_members_are_paused_the_zombie_is_one_of_them(target: str, outcome: Outcome) -> None:
    """m1's session ends after the pause."""
    story = two()
    story.paused(1_000, 2_000, target)
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    finding = judge(story)
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert finding.why == "session 0x1 of g_m1 ended, but no fault paused it or explains it otherwise"


@pytest.mark.parametrize(("target", "outcome"), [("m2", Outcome.UNKNOWN), ("m1", Outcome.VIOLATED)])
def test_a_pause_of_another_member_explains_no_session_s_end(target: str, outcome: Outcome) -> None:
    story = two()
    story.paused(1_000, 5_000, target)
    story.session_closed(3_000, "0x1")
    works(story, "m2", 5_100, 6_000)
    works(story, "m1", 5_200, 5_900)
    assert judge(story).outcome is outcome


def test_a_server_s_fault_explains_it_beside_a_pause() -> None:
    story = two()
    story.paused(1_000, 1_500, "m2")
    began = story.fault(2_000, "server-kill", "z1")
    story.bit(2_000, "server-kill", "z1", began)
    story.session_closed(3_000, "0x1")
    story.ended(4_000, "server-kill", "z1", began)
    zombie_of(story)
    assert judge(story).outcome is Outcome.VIOLATED


def test_the_zombie_s_own_reports_count_whether_or_not_it_began_first() -> None:
    """m1 works from before its session's end; m2 reports once beside it."""
    story = two()
    story.session_closed(3_000, "0x1")
    works(story, "m1", 2_900, 4_000)
    story.worked("m2", 3_500)
    assert judge(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("first_ms", "outcome"), [(2_998, Outcome.VIOLATED), (2_997.999, Outcome.UNKNOWN)])
def test_its_reports_count_from_2_ms_before_the_registry_says_that_its_session_ended(
    first_ms: float, outcome: Outcome
) -> None:
    """Less than 2 ms before the end of a work period of 50 ms later it reports again."""
    story = two()
    story.session_closed(3_000, "0x1")
    works(story, "m2", 2_000, 3_500)
    story.worked("m1", first_ms, 3_046)
    assert judge(story).outcome is outcome
