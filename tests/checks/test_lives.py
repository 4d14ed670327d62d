"""Lives: who was there, connected and undisturbed, and what it ran."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks.faults import under_way, undisturbed
from rebalance_lab.checks.members import MemberLife, member_lives
from rebalance_lab.checks.stretches import Stretch
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.files import History


def one(story: GroupStory) -> MemberLife:
    [life] = member_lives(story.history())
    return life


def stretches(life: MemberLife) -> list[tuple[int, int]]:
    return [(each.begin_us // 1000, each.end_us // 1000) for each in life.connected]


def test_a_member_is_connected_until_it_is_not_or_has_left() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.add(20, "m1", Kind.DISCONNECTED, session="0x1")
    story.add(30, "m1", Kind.CONNECTED, session="0x1")
    story.member(40, "m1", Kind.MEMBER_CLOSING)
    story.closed(50, "m1")
    life = one(story)
    assert stretches(life) == [(10, 20), (30, 50)]
    assert life.left_us == 40_000


def test_another_session_is_another_stretch() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.add(30, "m1", Kind.CONNECTED, session="0x9")
    story.rest(50)
    assert stretches(one(story)) == [(10, 30), (30, 50)]


def test_a_killed_member_is_there_until_its_kill() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.killed(40, "m1")
    story.rest(90)
    life = one(story)
    assert (stretches(life), life.left_us) == ([(10, 40)], 40_000)


def test_a_process_that_begins_again_under_another_name_is_another_life() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.closed(20, "m1")
    story.add(30, "m1", Kind.MEMBER_STARTED, member="g_again")
    story.add(31, "m1", Kind.CONNECTED, session="0x5")
    story.rest(90)
    first, second = member_lives(story.history())
    assert (stretches(first), stretches(second)) == ([(10, 20)], [(31, 90)])


def test_two_processes_of_one_name_are_two_lives() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.begins(20, "m1")
    story.add(30, "m2", Kind.MEMBER_STARTED, member="g_m1")
    story.add(31, "m2", Kind.CONNECTED, session="0x2")
    story.ends(40, "m1")
    story.rest(90)
    first, second = member_lives(story.history())
    assert [len(life.rebalances) for life in (first, second)] == [1, 0]
    assert first.rebalances[0].outcome == "ok"
    assert (stretches(first), stretches(second)) == ([(10, 90)], [(31, 90)])


def test_the_attempts_of_a_rebalance() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.begins(10, "m1")
    story.decides(11, "m1", [0])
    failed = story.fails(12, "m1", conflicts=[0])
    story.attempts(20, "m1")
    decided = story.decides(21, "m1", [0])
    ended = story.ends(22, "m1", attempts=2)
    [rebalance] = one(story).rebalances
    first, second = rebalance.attempts
    assert first.failed is not None and first.failed.id == failed
    assert second.failed is None
    assert second.decided is not None and second.decided.id == decided
    assert second.ended is not None and second.ended.id == ended
    assert (first.ended, first.decided is None) == (first.failed, False)


def test_a_rebalance_that_never_ends_has_no_outcome() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.begins(10, "m1")
    [rebalance] = one(story).rebalances
    assert (rebalance.outcome, rebalance.ended, rebalance.attempts[0].ended) == (None, None, None)


def test_the_end_of_a_rebalance_is_not_that_of_an_attempt_that_had_failed() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.begins(10, "m1")
    failed = story.fails(12, "m1")
    story.ends(20, "m1", "failed")
    [rebalance] = one(story).rebalances
    [attempt] = rebalance.attempts
    assert attempt.ended is not None and attempt.ended.id == failed
    assert rebalance.outcome == "failed"


def test_a_rebalance_may_end_before_its_first_attempt() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.member(10, "m1", Kind.REBALANCE_BEGAN)
    story.ends(20, "m1", "shutdown")
    [rebalance] = one(story).rebalances
    assert (rebalance.outcome, rebalance.attempts) == ("shutdown", [])


def test_what_is_told_of_nobody_that_started_changes_no_life() -> None:
    """The runner's session, and a member whose start nobody recorded."""
    story = GroupStory()
    story.comes(0, "m1")
    story.add(5, "runner", Kind.CONNECTED, session="0xff")
    story.rebalances(10, 20, "m7")
    assert [life.member for life in member_lives(story.history())] == ["g_m1"]


def test_stretches_are_bounded_by_their_events() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    lost = story.add(20, "m1", Kind.DISCONNECTED, session="0x1")
    began = story.fault(30, "pause", "m1")
    ended = story.ended(40, "pause", "m1", began)
    story.fault(50, "cut", "m1")
    story.add(60, "m1", Kind.CONNECTED, session="0x1")
    story.rest(90)
    life = one(story)
    assert life.connected == [
        Stretch(10_000, 20_000, ("m1", 1), lost),
        Stretch(60_000, 90_000, ("m1", 3), None),
    ]
    assert life.disturbed == [
        Stretch(30_000, 40_000, began, ended),
        Stretch(50_000, 90_000, ("runner", 2), None),
    ]


def test_a_deed_disturbs_nobody() -> None:
    """What a fault of a moment does is the group's to cope with."""
    story = GroupStory()
    story.comes(10, "m1")
    began = story.fault(20, "expire", "m1")
    story.ended(30, "expire", "m1", began)
    story.rest(90)
    life = one(story)
    assert life.disturbed == []
    assert life.undisturbed(10_000, 90_000), "connected to the very end"
    assert not life.undisturbed(10_000, 90_001)


def test_undisturbed_means_there_connected_and_no_fault_about_it() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.paused(30, 40, "m1")
    story.member(60, "m1", Kind.MEMBER_CLOSING)
    life = one(story)
    assert life.undisturbed(10_000, 29_999)
    assert not life.undisturbed(9_999, 29_999), "not there yet"
    assert not life.undisturbed(10_000, 30_000), "the pause begins"
    assert not life.undisturbed(40_000, 50_000), "the pause ends"
    assert life.undisturbed(40_001, 59_999)
    assert not life.undisturbed(40_001, 60_000), "it leaves"


def _event(history: History, wanted: EventId) -> int:
    return next(number for number, event in enumerate(history.events) if event.id == wanted)


def test_a_fault_is_under_way_until_it_ends_unless_it_is_a_deed() -> None:
    story = GroupStory()
    early = story.rest(5)
    began = story.fault(10, "pause", "m1")
    during = story.rest(15)
    story.ended(20, "pause", "m1", began)
    after = story.rest(25)
    story.fault(30, "topic", "t")
    deed = story.rest(35)
    story.fault(40, "cut", "m1")
    endless = story.rest(90)
    at_begin, at_end = story.rest(10), story.rest(20)
    history = story.history()
    assert under_way(history, history.events[_event(history, at_begin)])
    assert not under_way(history, history.events[_event(history, at_end)])
    told = {moment: under_way(history, history.events[_event(history, moment)]) for moment in (early, during, after)}
    assert told == {early: False, during: True, after: False}
    assert not under_way(history, history.events[_event(history, deed)])
    assert under_way(history, history.events[_event(history, endless)])


def test_a_stretch_is_undisturbed_where_no_fault_goes_on_in_it() -> None:
    story = GroupStory()
    story.fault(5, "topic", "t")  # a deed
    story.paused(10, 20, "m1")
    story.fault(40, "cut", "m1")
    story.rest(90)
    history = story.history()
    assert undisturbed(history, 0, 9_999)
    assert not undisturbed(history, 0, 10_000)
    assert not undisturbed(history, 12_000, 15_000)
    assert not undisturbed(history, 20_000, 30_000)
    assert undisturbed(history, 20_001, 39_999)
    assert not undisturbed(history, 50_000, 60_000)
