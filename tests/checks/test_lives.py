"""Lives: who was there, connected and undisturbed, and what it ran."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks.faults import under_way
from rebalance_lab.checks.lives import Life, lives
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.files import History


def one(story: GroupStory) -> Life:
    [life] = lives(story.history())
    return life


def stretches(life: Life) -> list[tuple[int, int]]:
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
    first, second = lives(story.history())
    assert (stretches(first), stretches(second)) == ([(10, 20)], [(31, 90)])


def test_two_processes_of_one_name_are_two_lives() -> None:
    story = GroupStory()
    story.comes(10, "m1")
    story.begins(20, "m1")
    story.add(30, "m2", Kind.MEMBER_STARTED, member="g_m1")
    story.add(31, "m2", Kind.CONNECTED, session="0x2")
    story.ends(40, "m1")
    story.rest(90)
    first, second = lives(story.history())
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
    history = story.history()
    told = {moment: under_way(history, history.events[_event(history, moment)]) for moment in (early, during, after)}
    assert told == {early: False, during: True, after: False}
    assert not under_way(history, history.events[_event(history, deed)])
    assert under_way(history, history.events[_event(history, endless)])
