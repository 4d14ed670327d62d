"""The list of members that a reply held, and the partitions of the topics read before it (`checks.reads`)."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks.reads import ReadList, read_list
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.wire.view_digest import view_digest

TOPIC = "/brokers/topics/t"


def zxid_of(story: GroupStory, made: EventId) -> int:
    return next(event.zxid or 0 for event in story.events if event.id == made)


def reads_ids(story: GroupStory, ms: float, zxid: int, actor: str = "m1", group: str = "g") -> None:
    story.asks(ms, actor, "children", f"/consumers/{group}/ids", zxid=zxid)


def read(story: GroupStory, named: int, actor: str = "m1", group: str = "g") -> ReadList | None:
    """What the actor had read when it decides at 5 s by the list that zxid `named` left."""
    story.add(5_000, actor, Kind.DECIDED, member=f"{group}_{actor}", group=group)
    decided: Event = story.events[-1]
    return read_list(story.history(), group, decided, named)


def digest(story: GroupStory, named: int) -> str:
    found = read(story, named)
    assert found is not None
    return found.digest


def test_the_list_is_of_those_who_were_registered_then() -> None:
    """g_m2 had gone, g_m1 had only changed its id, and h_m3 is of another group."""
    story = GroupStory()
    story.joins(10, "m1")
    story.joins(20, "m2")
    story.joins(30, "m3", group="h")
    left = zxid_of(story, story.goes(40, "m2"))
    changed = zxid_of(story, story.registers(50, "m1", kind=Kind.CHANGED))
    reads_ids(story, 60, changed)
    found = read(story, left)
    assert found is not None
    assert (found.members, found.digest) == (1, view_digest(["g_m1"], {}))
    assert found.at.id == ("m1", 3)


def test_a_list_that_no_member_had_joined_yet_is_no_later_one() -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    joined = zxid_of(story, story.joins(10, "m1"))
    reads_ids(story, 60, joined - 1)
    assert read(story, joined) is None


def test_a_list_of_a_group_that_nobody_ever_joined_is_none() -> None:
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))
    reads_ids(story, 60, joined, group="h")
    assert read(story, joined, group="h") is None


@pytest.mark.parametrize("attempt", [True, False])
def test_who_reads_no_topic_in_an_attempt_saw_no_partitions(attempt: bool) -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    joined = zxid_of(story, story.joins(10, "m1"))
    if attempt:
        story.begins(50, "m1")
    else:
        story.asks(50, "m1", "get", TOPIC, zxid=joined)
    reads_ids(story, 60, joined)
    assert digest(story, joined) == view_digest(["g_m1"], {})


@pytest.mark.parametrize(("read_at", "partitions"), [(1, ()), (2, (0,)), (3, (0, 1)), (4, (0, 1, 2)), (5, ())])
def test_a_topic_has_the_partitions_of_the_moment_at_which_it_was_read(
    read_at: int, partitions: tuple[int, ...]
) -> None:
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))  # zxid 1
    story.topic(20, "t", 1)
    story.topic(30, "t", 2, Kind.CHANGED)
    story.topic(40, "t", 3, Kind.CHANGED)
    story.topic(50, "t", 3, Kind.DELETED)
    story.begins(100, "m1")
    story.asks(110, "m1", "get", TOPIC, zxid=read_at)
    reads_ids(story, 120, 5)
    assert digest(story, joined) == view_digest(["g_m1"], {"t": partitions})


def test_a_topic_that_is_not_there_was_read_and_has_no_partitions() -> None:
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))
    story.begins(100, "m1")
    story.add(110, "m1", Kind.FAILED_OP, group=None, zxid=joined, detail={"op": "get", "path": TOPIC, "code": -101})
    reads_ids(story, 120, joined)
    assert digest(story, joined) == view_digest(["g_m1"], {"t": ()})


@pytest.mark.parametrize(("op", "path"), [("get", "/consumers/g/ids/g_m1"), ("exists", TOPIC)])
def test_other_reads_show_no_partitions(op: str, path: str) -> None:
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))
    story.topic(20, "t", 1)
    story.begins(100, "m1")
    story.asks(110, "m1", op, path, zxid=9)
    reads_ids(story, 120, joined)
    assert digest(story, joined) == view_digest(["g_m1"], {})
