"""The list of members that a reply held, and the partitions of the topics read before it (`checks.decisions`)."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks.decisions import ViewRead, view_read, views_read
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.wire.view_digest import view_digest

TOPIC = "/brokers/topics/t"


def zxid_of(story: GroupStory, made: EventId) -> int:
    return next(event.zxid or 0 for event in story.events if event.id == made)


def reads_ids(story: GroupStory, ms: float, zxid: int, actor: str = "m1", group: str = "g") -> None:
    story.asks(ms, actor, "children", f"/consumers/{group}/ids", zxid=zxid)


def decided(story: GroupStory, named: int, view: str = "v", actor: str = "m1", group: str = "g") -> tuple[Event, Event]:
    """The actor's latest ATTEMPT_BEGAN (the first event of all, where it has none), and a DECIDED at 5 s that names the
    list that zxid `named` left."""
    began = [event for event in story.events if event.kind is Kind.ATTEMPT_BEGAN and event.actor == actor]
    detail = {"members_zxid": named, "view": view}
    story.add(5_000, actor, Kind.DECIDED, member=f"{group}_{actor}", group=group, detail=detail)
    return (began or [event for event in story.events if event.actor == actor])[-1 if began else 0], story.events[-1]


def read(story: GroupStory, named: int, view: str = "v", group: str = "g") -> ViewRead | None:
    """The view that m1 had read when it decides at 5 s."""
    return view_read(story.history(), group, *decided(story, named, view, group=group))


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
    story.begins(55, "m1")
    reads_ids(story, 60, changed)
    found = read(story, left)
    assert found is not None
    assert found == ViewRead(left, 1, (), view_digest(["g_m1"], {}))


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


@pytest.mark.parametrize("before", [True, False])
def test_who_reads_no_topic_in_an_attempt_saw_no_partitions(before: bool) -> None:
    story = GroupStory()
    story.topic(0, "t", 1)
    joined = zxid_of(story, story.joins(10, "m1"))
    if before:
        story.asks(40, "m1", "get", TOPIC, zxid=joined)
    story.begins(50, "m1")
    reads_ids(story, 60, joined)
    assert digest(story, joined) == view_digest(["g_m1"], {})


def test_what_an_attempt_before_read_was_not_seen() -> None:
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))
    story.begins(50, "m1")
    reads_ids(story, 60, joined)
    story.fails(70, "m1")
    story.attempts(80, "m1")
    assert read(story, joined) is None


def twice(partitions: int = 2) -> tuple[GroupStory, int, list[str]]:
    """In an attempt m1 reads topic t with one partition, and again with `partitions`, before it reads the list. What a
    digest of the one and of the other is."""
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))  # zxid 1
    story.topic(20, "t", 1)
    story.topic(30, "t", partitions, Kind.CHANGED)
    story.begins(100, "m1")
    story.asks(110, "m1", "get", TOPIC, zxid=2)
    story.asks(115, "m1", "get", TOPIC, zxid=3)
    reads_ids(story, 120, 3)
    return story, joined, [view_digest(["g_m1"], {"t": range(number)}) for number in (1, partitions)]


@pytest.mark.parametrize("dealt", [0, 1])
def test_of_a_topic_that_was_read_twice_the_member_says_which_read_it_dealt_from(dealt: int) -> None:
    """ZkClient's event thread reads a topic again when its watch fires."""
    story, joined, digests = twice()
    assert read(story, joined, digests[dealt]) == ViewRead(joined, 1, (("t", tuple(range(dealt + 1))),), digests[dealt])


def test_where_the_member_says_neither_it_is_not_known() -> None:
    story, joined, _ = twice()
    assert read(story, joined, "v") is None


def test_a_topic_that_was_read_twice_and_had_not_changed_is_one() -> None:
    story, joined, digests = twice(1)
    assert read(story, joined, "v") == ViewRead(joined, 1, (("t", (0,)),), digests[0])


@pytest.mark.parametrize("named", [0, 1, 2])
def test_of_two_lists_the_named_one_was_dealt_from(named: int) -> None:
    """Which of two it was is not known of a member that names another."""
    story = GroupStory()
    joined = [zxid_of(story, story.joins(10 * number, f"m{number}")) for number in (1, 2)]
    story.begins(100, "m1")
    for zxid in joined:
        reads_ids(story, 120, zxid)
    names = [["g_m1"], ["g_m1", "g_m2"]]
    of = [ViewRead(zxid, len(each), (), view_digest(each, {})) for zxid, each in zip(joined, names, strict=True)]
    assert views_read(story.history(), "g", *decided(story, 0)) == of
    assert read(story, [*joined, 99][named]) == [*of, None][named]


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


def test_no_more_than_256_views_are_looked_at() -> None:
    """Nine topics of which each was read twice, and had changed, are 512 views."""
    story = GroupStory()
    joined = zxid_of(story, story.joins(10, "m1"))  # zxid 1
    names = [f"t{number}" for number in range(9)]
    for partitions, kind in ((1, Kind.CREATED), (2, Kind.CHANGED)):
        for name in names:
            story.topic(20, name, partitions, kind)
    story.begins(100, "m1")
    for zxid in (10, 19):
        for name in names:
            story.asks(110, "m1", "get", f"/brokers/topics/{name}", zxid=zxid)
    reads_ids(story, 120, 19)
    assert len(views_read(story.history(), "g", *decided(story, joined))) == 256
