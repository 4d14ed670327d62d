"""Zombies (Z10): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from outlived_story import NONE, judge, paused, two, works, zombie_of

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.events import Kind


def test_a_zombie_that_works_on_beside_its_successor_is_violated() -> None:
    story = two()
    began, closed = paused(story)
    story.owned(3_100, "m2")
    successor = works(story, "m2", 3_200, 6_000)
    zombie = works(story, "m1", 5_010, 5_510)
    story.disowned(5_600, "m1")
    finding = judge(story)
    assert finding == Finding(
        Outcome.VIOLATED,
        "g_m1 outlived its session 0x1 (pause), and went on working beside g_m2 for 0.500 s; "
        "beliefs overlapped for 2.500 s",
        (began, closed, successor, zombie),
        {**NONE, "count": 1, "zombies": 1, "longest_us": 500_000}
        | {"total_effect_us": 500_000, "longest_belief_us": 2_500_000, "total_belief_us": 2_500_000},
    )


def test_who_only_believes_on_is_fenced() -> None:
    """It cannot help it while it stands still; awake it does nothing."""
    story = two()
    paused(story)
    story.owned(3_100, "m2")
    works(story, "m2", 3_200, 6_000)
    story.disowned(5_100, "m1")
    finding = judge(story)
    assert finding.outcome is Outcome.CLEAN
    assert (finding.measures["zombies"], finding.measures["longest_belief_us"]) == (1, 2_000_000)


def test_a_belief_that_began_as_the_other_ended_adds_nothing() -> None:
    for ended_ms, length_us in ((5_100, 0), (5_100.001, 1)):
        story = two()
        paused(story)
        works(story, "m2", 3_200, 6_000)
        story.owned(5_100, "m2")
        story.disowned(ended_ms, "m1")
        measures = judge(story).measures
        assert (measures["longest_belief_us"], measures["total_belief_us"]) == (length_us, length_us)


def test_the_report_of_its_stop_is_no_work() -> None:
    story = two()
    works(story, "m1", 500, 1_000)
    paused(story)
    works(story, "m2", 3_200, 6_000)
    story.member(5_100, "m1", Kind.WORKED, topic="t", partition=0, detail={"last": True})
    assert judge(story).outcome is Outcome.CLEAN


def test_a_zombie_without_a_successor_harms_nobody() -> None:
    story = two()
    paused(story)
    works(story, "m1", 5_000, 5_100)
    why = "no member that outlived its session went on working beside a successor"
    assert judge(story) == Finding(Outcome.CLEAN, why, (), {**NONE, "zombies": 1})


def test_an_overlap_of_two_that_live_in_their_sessions_is_no_zombie_s() -> None:
    story = two()
    works(story, "m1", 200, 400)
    works(story, "m2", 200, 400)
    finding = judge(story)
    assert (finding.outcome, finding.measures["zombies"]) == (Outcome.CLEAN, 0)


def test_an_overlap_of_two_others_is_not_the_zombie_s() -> None:
    story = two()
    paused(story)
    story.comes(30, "m3")
    works(story, "m2", 3_100, 3_300, 1)
    works(story, "m3", 3_100, 3_300, 1)
    assert judge(story).outcome is Outcome.CLEAN


def owns_again(story: GroupStory, ms: float) -> None:
    """m1 owns t/3 in the new session 0x9."""
    story.add(ms, "m1", Kind.CONNECTED, session="0x9")
    story.created(ms, "m1", 3, session="0x9")
    story.owned(ms, "m1", 3)


def test_once_it_owns_something_again_it_is_none_any_more() -> None:
    for again_ms, outcome in ((5_500, Outcome.CLEAN), (5_700, Outcome.VIOLATED)):
        story = two()
        paused(story)
        works(story, "m1", 5_000, 6_000)
        owns_again(story, again_ms)
        works(story, "m2", 5_600, 6_100)
        assert judge(story).outcome is outcome


def test_without_a_fault_the_session_s_end_is_witness_enough() -> None:
    """An election that took longer than the session, say."""
    story = two()
    closed = story.session_closed(3_000, "0x1")
    zombie = zombie_of(story)
    finding = judge(story)
    assert finding.witness == (closed, ("m2", 2), zombie)
    assert finding.why.startswith(
        "g_m1 outlived its session 0x1, and went on working beside g_m2 for 0.800 s; beliefs overlapped for under 1 µs"
    )


def test_a_fault_about_something_else_is_named_where_none_is_about_the_member() -> None:
    story = two()
    began = story.fault(2_000, "server-kill", "z1")
    story.bit(2_000, "server-kill", "z1", began)
    story.session_closed(3_000, "0x1")
    story.ended(4_000, "server-kill", "z1", began)
    zombie_of(story)
    assert judge(story).witness[0] == began


def test_a_fault_that_was_over_is_not_named() -> None:
    story = two()
    story.paused(1_000, 2_000, "m1")
    closed = story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).witness[0] == closed


@pytest.mark.parametrize("kind", [Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED])
def test_who_leaves_outlives_nothing(kind: Kind) -> None:
    story = two()
    story.member(2_900, "m1", kind)
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).measures["zombies"] == 0


def test_who_was_killed_outlives_nothing() -> None:
    story = two()
    story.killed(2_000, "m1")
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).measures["zombies"] == 0


def test_a_second_session_of_a_member_is_its_own() -> None:
    """It came back in session 0x9, owned again, and lost that too."""
    story = two()
    story.session_closed(1_000, "0x1")
    story.disowned(1_500, "m1")
    story.add(1_400, "m1", Kind.EXPIRED, session="0x1")
    story.add(1_450, "m1", Kind.CONNECTED, session="0x9")
    story.created(2_000, "m1", session="0x9")
    story.owned(2_000, "m1")
    closed = story.session_closed(3_000, "0x9")
    zombie_of(story)
    finding = judge(story)
    assert (finding.outcome, finding.measures["zombies"]) == (Outcome.VIOLATED, 2)
    assert finding.witness[0] == closed


def test_a_double_of_its_name_is_not_the_zombie() -> None:
    story = two()
    paused(story)
    story.add(2_500, "m3", Kind.MEMBER_STARTED, member="g_m1")
    story.add(3_200, "m3", Kind.WORKED, member="g_m1", topic="t", partition=0)
    works(story, "m2", 3_100, 3_300)
    assert judge(story).outcome is Outcome.CLEAN


# -- who, and since when ------------------------------------------------------------------------


@pytest.mark.parametrize(("left_ms", "zombies"), [(3_002, 0), (3_002.001, 1)])
def test_who_leaves_within_2_ms_of_its_session_s_end_left_with_it(left_ms: float, zombies: int) -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    story.member(left_ms, "m1", Kind.MEMBER_CLOSING)
    zombie_of(story)
    assert judge(story).measures["zombies"] == zombies


def test_one_that_left_does_not_hide_another_that_outlived() -> None:
    story = two()
    story.comes(30, "m3")
    story.closed(2_000, "m3")
    story.session_closed(2_500, "0x3")
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).measures["zombies"] == 1


def test_who_never_owned_anything_may_work_all_the_same() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.comes(20, "m2")
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("began_ms", "ended_ms", "named"), [
    (3_002, 4_000, True), (3_002.001, 4_000, False), (1_000, 2_998, True), (1_000, 2_997.999, False),
])  # fmt: skip
def test_a_fault_is_named_if_the_session_ended_in_it_or_2_ms_beside(
    began_ms: float, ended_ms: float, named: bool
) -> None:
    story = two()
    began = story.paused(began_ms, ended_ms, "m1")
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert (judge(story).witness[0] == began) is named


def test_of_several_faults_the_one_about_the_member_is_named() -> None:
    story = two()
    own = story.paused(1_000, 5_000, "m1")
    story.paused(2_000, 5_000, "m2")
    story.session_closed(3_000, "0x1")
    zombie_of(story)
    assert judge(story).witness[0] == own


def test_the_longest_of_several_is_told() -> None:
    story = two()
    story.comes(30, "m3")
    story.session_closed(3_000, "0x1")
    story.session_closed(3_000, "0x3")
    works(story, "m2", 3_100, 5_000)
    works(story, "m1", 3_200, 3_300)
    works(story, "m3", 3_200, 4_900)
    assert judge(story).why.startswith("g_m3 outlived its session 0x3, ")


def test_what_begins_as_it_owns_again_is_no_zombie_s() -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    owns_again(story, 3_200)
    zombie_of(story)
    assert judge(story).measures["longest_us"] == 0


def test_its_word_alone_does_not_make_it_an_owner_again() -> None:
    """It reports OWNED, and has no new session, or the registry has no znode of it there."""
    cases = (
        "nothing",
        "its old session",
        "another partition",
        "the new session",
        "a claim 2 ms later",
        "one later still",
    )
    for backed in cases:
        story = two()
        story.session_closed(3_000, "0x1")
        if backed != "nothing":
            story.add(3_100, "m1", Kind.CONNECTED, session="0x9")
            session = "0x1" if backed == "its old session" else "0x9"
            later_ms = {"a claim 2 ms later": 2, "one later still": 2.001}.get(backed, 0)
            story.created(3_150 + later_ms, "m1", 4 if backed == "another partition" else 3, session=session)
        story.owned(3_150, "m1", 3)
        zombie_of(story)
        expected = Outcome.CLEAN if backed in ("the new session", "a claim 2 ms later") else Outcome.VIOLATED
        assert judge(story).outcome is expected, backed


def test_a_session_that_it_reports_after_it_owned_does_not_back_that() -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    story.created(3_150, "m1", 3, session="0x9")
    story.owned(3_150, "m1", 3)
    story.add(3_160, "m1", Kind.CONNECTED, session="0x9")
    zombie_of(story)
    assert judge(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("connected_ms", "outcome"), [(2_998, Outcome.VIOLATED), (2_998.001, Outcome.CLEAN)])
def test_a_session_that_it_reports_within_2_ms_of_the_other_s_end_may_be_the_next(
    connected_ms: float, outcome: Outcome
) -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    story.add(connected_ms, "m1", Kind.CONNECTED, session="0x9")
    story.created(3_050, "m1", 3, session="0x9")
    story.owned(3_050, "m1", 3)
    zombie_of(story)
    assert judge(story).outcome is outcome


def test_an_earlier_session_does_not_back_what_it_owns_later() -> None:
    """m1 was connected in session 0x9 before the one that ended."""
    story = two()
    owns_again(story, 150)
    story.add(200, "m1", Kind.CONNECTED, session="0x1")
    story.session_closed(3_000, "0x1")
    story.owned(3_150, "m1", 3)
    zombie_of(story)
    assert judge(story).outcome is Outcome.VIOLATED


# -- doubts -----------------------------------------------------------------------------------


def test_a_pause_that_did_not_outlast_the_session_leaves_it_open() -> None:
    story = two()
    began = story.fault(1_000, "pause", "m1", "0x1", outlast=True)
    story.bit(1_000, "pause", "m1", began)
    story.ended(5_000, "pause", "m1", began)
    assert judge(story).outcome is Outcome.UNKNOWN


def test_a_clean_group_under_a_clock_that_drifted_is_not_known() -> None:
    story = two(wall_drift_us=2_001)
    works(story, "m1", 200, 400)
    assert judge(story).outcome is Outcome.UNKNOWN


def test_a_zombie_that_worked_first_is_told_with_the_other() -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    works(story, "m1", 2_900, 4_000)
    works(story, "m2", 3_500, 5_000)
    assert (
        "g_m1 outlived its session 0x1, and went on working beside g_m2 for 0.500 s; beliefs overlapped for under 1 µs"
        in judge(story).why
    )


def test_one_instant_of_work_beside_each_other_is_enough() -> None:
    story = two()
    story.session_closed(3_000, "0x1")
    works(story, "m1", 3_100, 3_300)
    works(story, "m2", 3_300, 3_500)
    assert judge(story).outcome is Outcome.VIOLATED


def test_a_group_that_did_nothing_is_unknown() -> None:
    story = two()
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no member ever worked on a partition")


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = two(wall_drift_us=2_001)
    paused(story)
    zombie_of(story)
    assert judge(story).outcome is Outcome.UNKNOWN
