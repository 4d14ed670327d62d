"""Due: when a partition must have an owner."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks.unowned_window import due
from rebalance_lab.history.events import Kind

#: (topic, partition) -> [(from, until)] in ms.
Times = dict[tuple[str, int], list[tuple[float, float]]]


def lives(story: GroupStory, actor: str, from_ms: float, **registration: object) -> None:
    """A member that registers for t, or what `registration` names, and is alive from then on."""
    group = str(registration.get("group", "g"))
    story.joins(from_ms - 10, actor, **registration)
    story.rebalances(from_ms - 5, from_ms, actor, group=group)


def times(story: GroupStory, group: str = "g") -> Times:
    """Until 9 s."""
    story.rest(9_000)
    found = due(story.history())
    assert found.doubts == []
    return {
        place[1:]: [(each.begin_us / 1000, each.end_us / 1000) for each in stretches]
        for place, stretches in found.places.items()
        if place[0] == group
    }


def doubts(story: GroupStory) -> list[str]:
    story.rest(9_000)
    return list(due(story.history()).doubts)


def test_every_partition_of_a_topic_is_due_while_a_member_lives_that_reads_it() -> None:
    story = GroupStory()
    story.topic(0, "t", 2)
    lives(story, "m1", 100)
    lives(story, "m2", 500)
    story.closed(2_000, "m1")
    story.killed(3_000, "m2")
    assert times(story) == {("t", 0): [(100, 3_000)], ("t", 1): [(100, 3_000)]}


def test_a_gap_between_two_members_is_one() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.closed(2_000, "m1")
    lives(story, "m2", 5_000)
    assert times(story) == {("t", 0): [(100, 2_000), (5_000, 9_000)]}


def test_topics_are_due_where_somebody_reads_them() -> None:
    """Partitions that nobody subscribes to need no owner, and those of another group have theirs."""
    story = GroupStory()
    for topic in ("a", "b", "c"):
        story.topic(0, topic, 1)
    lives(story, "m1", 100, streams={"a": 1})
    lives(story, "m2", 200, streams={"a": 1, "b": 1})
    lives(story, "m3", 300, group="h", streams={"b": 1})
    assert times(story) == {("a", 0): [(100, 9_000)], ("b", 0): [(200, 9_000)]}
    assert times(story, "h") == {("b", 0): [(300, 9_000)]}


def test_partitions_are_due_from_when_the_topic_has_them_until_it_has_not() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.topic(1_000, "t", 3, Kind.CHANGED)
    story.topic(2_000, "t", 2, Kind.CHANGED)
    story.topic(3_000, "t", 2, Kind.DELETED)
    story.topic(4_000, "t", 1)
    assert times(story) == {
        ("t", 0): [(100, 3_000), (4_000, 9_000)],
        ("t", 1): [(1_000, 3_000)],
        ("t", 2): [(1_000, 2_000)],
    }


def test_the_event_that_made_a_partition_due_begins_it() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    ended = story.events[-1].id
    grown = story.topic(1_000, "t", 2, Kind.CHANGED)
    closing = story.phase(2_000, "closing")
    story.closed(2_500, "m1")
    places = due(story.history()).places
    assert {place[2]: [(each.begin, each.end) for each in places[place]] for place in places} == {
        0: [(ended, closing)],
        1: [(grown, closing)],
    }


def test_a_filter_takes_topics_that_came_later() -> None:
    story = GroupStory()
    story.topic(0, "t1", 1)
    lives(story, "m1", 100, streams={"t.*": 1}, pattern="white_list")
    story.topic(1_000, "t2", 1)
    story.topic(1_000, "u", 1)
    assert times(story) == {("t1", 0): [(100, 9_000)], ("t2", 0): [(1_000, 9_000)]}


def test_a_registration_holds_until_the_next_though_it_was_deleted() -> None:
    story = GroupStory()
    for topic in ("a", "b"):
        story.topic(0, topic, 1)
    lives(story, "m1", 100, streams={"a": 1})
    story.goes(1_000, "m1")
    story.registers(3_000, "m1", streams={"b": 1})
    assert times(story) == {("a", 0): [(100, 3_000)], ("b", 0): [(3_000, 9_000)]}


def test_two_processes_that_go_by_one_name_are_alive_one_by_one() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.add(150, "m9", Kind.MEMBER_STARTED, member="g_m1")
    story.add(200, "m9", Kind.REBALANCE_ENDED, member="g_m1", detail={"outcome": "ok"})
    story.killed(1_000, "m1")
    assert times(story) == {("t", 0): [(100, 9_000)]}


def test_a_group_that_begins_in_the_closing_phase_has_nothing_due() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    story.phase(50, "closing")
    lives(story, "m1", 100)
    assert doubts(story) == ["no rebalance ever succeeded, so no partition was due"]


def test_who_never_registered_leaves_it_open_what_was_due() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.started(0, "m2")
    story.rebalanced(100, "m2")
    assert doubts(story) == ["g_m2 was alive but never registered"]


def test_so_does_who_subscribes_to_what_cannot_be_read() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100, streams={"[": 1}, pattern="white_list")
    assert doubts(story) == ["the subscription of g_m1 cannot be read from /consumers/g/ids/g_m1"]


def test_a_group_whose_topic_never_existed_had_nothing_to_own() -> None:
    story = GroupStory()
    story.topic(0, "u", 1)
    lives(story, "m1", 100)
    assert doubts(story) == ["no live member was registered for a topic that existed"]


def test_an_id_that_is_changed_takes_no_topic_back_and_one_that_is_created_anew_does() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    story.topic(0, "u", 1)
    lives(story, "m1", 100)
    story.registers(2_000, "m1", streams={"u": 1}, kind=Kind.CHANGED)
    story.registers(5_000, "m1", streams={"u": 1})
    assert times(story) == {("t", 0): [(100, 5_000)], ("u", 0): [(2_000, 9_000)]}


def bounding(story: GroupStory) -> dict[tuple[str, int], list[tuple[object, object]]]:
    """(topic, partition) -> the events that bound the times at which it was due."""
    places = due(story.history()).places
    return {place[1:]: [(each.begin, each.end) for each in stretches] for place, stretches in places.items()}


def test_a_topic_that_comes_takes_no_partition_of_another() -> None:
    story = GroupStory()
    story.topic(0, "t", 3)
    lives(story, "m1", 100)
    story.topic(1_000, "u", 1)
    assert times(story) == {("t", partition): [(100, 9_000)] for partition in range(3)}


def test_the_deletion_of_a_topic_ends_what_its_creation_began() -> None:
    story = GroupStory()
    lives(story, "m1", 100)
    made = story.topic(1_000, "t", 1)
    gone = story.topic(2_000, "t", 1, Kind.DELETED)
    story.rest(9_000)
    assert bounding(story) == {("t", 0): [(made, gone)]}


def test_a_registration_begins_what_it_asks_for_and_ends_with_the_next() -> None:
    story = GroupStory()
    for topic in ("t", "u", "v"):
        story.topic(0, topic, 1)
    lives(story, "m1", 100)
    ended = story.events[-1].id
    second = story.registers(1_000, "m1", streams={"u": 1})
    third = story.registers(2_000, "m1", streams={"v": 1})
    story.phase(9_000, "closing")
    closing = story.events[-1].id
    assert bounding(story) == {("t", 0): [(ended, second)], ("u", 0): [(second, third)], ("v", 0): [(third, closing)]}


def test_nothing_is_due_in_the_closing_phase() -> None:
    """Neither the end of the member nor that of its registration or its topic counts there."""
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.phase(2_000, "closing")
    story.registers(3_000, "m1")
    story.topic(3_000, "t", 1, Kind.DELETED)
    story.closed(3_000, "m1")
    assert times(story) == {("t", 0): [(100, 2_000)]}


@pytest.mark.parametrize(("settled_ms", "doubt"), [
    (1_999, "no live member was registered for a topic that existed"),
    (2_000, "no rebalance ever succeeded, so no partition was due"),
])  # fmt: skip
def test_who_settles_as_the_closing_phase_begins_did_not_live(settled_ms: float, doubt: str) -> None:
    story = GroupStory()
    lives(story, "m1", settled_ms)
    story.phase(2_000, "closing")
    assert doubts(story) == [doubt]


def test_who_ends_at_the_moment_at_which_it_settled_had_lived() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "m1", 100)
    story.killed(100, "m1")
    assert doubts(story) == ["no live member was registered for a topic that existed"]


def test_one_name_in_two_groups_is_two_members() -> None:
    """Group g of h_m1, and group g_h of m1: both are called g_h_m1."""
    story = GroupStory()
    story.topic(0, "t", 1)
    lives(story, "h_m1", 100)
    lives(story, "m1", 200, group="g_h")
    assert times(story) == {("t", 0): [(100, 9_000)]}
    assert times(story, "g_h") == {("t", 0): [(200, 9_000)]}
