"""Lives of ids and owner znodes, and kills."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks.znodes import Violation, kills, znodes_of
from rebalance_lab.history.events import EventId


def violations(story: GroupStory) -> list[Violation]:
    return znodes_of(story.history())[1]


def test_a_znode_that_is_not_ephemeral_is_told_and_so_is_what_comes_after_it() -> None:
    story = GroupStory()
    first = story.created_id(10, "m1", "0x1", ephemeral=False)
    second = story.created_id(20, "m2", "0x2")
    closed = story.session_closed(30, "0x2")
    third = story.created_id(40, "m3", "0x3", ephemeral=False)
    found = violations(story)
    assert found[0] == Violation("/consumers/g/ids/g_m1 was created as a persistent znode", (first,), 1)
    assert [(each.witness, each.rank) for each in found[1:]] == [((second, closed), 2), ((third,), 4)]


def test_a_znode_that_another_session_deletes_is_told() -> None:
    story = GroupStory()
    created = story.created_id(10, "m1", "0x1")
    deleted = story.deleted_id(20, "m1", "0x2")
    why = "/consumers/g/ids/g_m1 of session 0x1 was deleted by session 0x2"
    assert violations(story) == [Violation(why, (created, deleted), 1)]


def test_a_life_whose_end_is_missing_ends_with_the_next() -> None:
    story = GroupStory()
    story.created_id(10, "m1", "0x1")
    second = story.created_id(20, "m1", "0x2")
    lives, _ = znodes_of(story.history())
    assert [life.deleted and life.deleted.id for life in lives] == [second, None]


def registered_at_kill(story: GroupStory) -> EventId | None:
    history = story.history()
    [kill] = kills(history, znodes_of(history)[0])
    return kill.registered.created.id if kill.registered else None


def test_of_two_ids_that_may_have_stood_the_later_is_the_one_that_it_had() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.created_id(10, "m1", "0x1")
    story.deleted_id(998, "m1", "0x1")
    later = story.created_id(999, "m1", "0x1")
    story.killed(1000, "m1")
    assert registered_at_kill(story) == later


def test_only_kills_count_and_a_rest_after_them() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.paused(500, 600, "m1")
    story.killed(1000, "m1")
    story.rest(1000)
    history = story.history()
    [kill] = kills(history, [])
    assert (kill.member, kill.rest) == ("g_m1", None)
