"""Members that are there and not registered (Z1)."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks.registration import unregistered
from rebalance_lab.checks.znodes import Violation, znodes_of
from rebalance_lab.history.events import Kind


def found(story: GroupStory) -> list[Violation]:
    history = story.history()
    return unregistered(history, [znode for znode in znodes_of(history)[0] if znode.is_id])


def test_who_lives_at_rest_without_an_id_is_told_by_time() -> None:
    story = GroupStory()
    started = story.comes(0, "m1")
    rest = story.rest(1000)
    why = "g_m1 (m1, session 0x1) was alive at rest, but not registered"
    assert found(story) == [Violation(why, (started, rest), 0, by_time=True)]


def test_an_id_of_another_session_is_told_with_it() -> None:
    story = GroupStory()
    started = story.comes(0, "m1")
    other = story.registers(500, "m1", session="0x9")
    rest = story.rest(1000)
    [violation] = found(story)
    assert violation.why.endswith("but not registered: session 0x9 holds its id")
    assert (violation.witness, violation.rank, violation.by_time) == ((started, other, rest), 1, True)


def test_each_member_is_told_once() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.joins(0, "m2")
    story.comes(0, "m3")
    story.rest(1000)
    story.rest(2000)
    assert [violation.why.split()[0] for violation in found(story)] == ["g_m1", "g_m3"]


@pytest.mark.parametrize("kind", [Kind.MEMBER_CLOSING, Kind.MEMBER_CLOSED])
@pytest.mark.parametrize(("left_ms", "told"), [(999.999, 0), (1000, 1)])
def test_who_leaves_at_the_rest_was_there(kind: Kind, left_ms: float, told: int) -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.member(left_ms, "m1", kind)
    story.rest(1000)
    assert len(found(story)) == told


@pytest.mark.parametrize(("from_ms", "until_ms", "told"), [
    (0, 1000, 1), (0, 999.999, 0), (1000, 2000, 1), (1000.001, 2000, 0),
])  # fmt: skip
def test_only_who_is_connected_at_the_rest_should_be_registered(from_ms: float, until_ms: float, told: int) -> None:
    story = GroupStory()
    story.started(0, "m1")
    story.add(from_ms, "m1", Kind.CONNECTED, session="0x1")
    story.add(until_ms, "m1", Kind.DISCONNECTED, session="0x1")
    story.rest(1000)
    assert len(found(story)) == told


def test_an_id_in_another_group_is_not_a_registration() -> None:
    story = GroupStory()
    story.comes(0, "m1")
    story.registers(500, "m1", group="h")
    story.rest(1000)
    assert [violation.why.split()[0] for violation in found(story)] == ["g_m1"]
