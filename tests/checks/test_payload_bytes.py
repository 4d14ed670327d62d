"""Bytes of payload that reads bring."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks.operations import payload_bytes
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History


def story() -> GroupStory:
    """/x holds ä (two bytes) from zxid 1, 12345 from 3, and is gone from 5; /c has children ab from 2, and c from 4."""
    told = GroupStory()
    told.registry(1, Kind.CREATED, "/x", "0x1", detail={"data": "ä"})
    told.registry(2, Kind.CREATED, "/c/ab", "0x1", detail={"data": ""})
    told.registry(3, Kind.CHANGED, "/x", "0x1", detail={"data": "12345"})
    told.registry(4, Kind.CREATED, "/c/c", "0x1", detail={"data": "1"})
    told.registry(5, Kind.DELETED, "/x", "0x1")
    told.registry(6, Kind.DELETED, "/c/ab", "0x1")
    return told


def answer(told: GroupStory, op: str, path: str, zxid: int | None, **more: object) -> tuple[History, Event]:
    asked = told.add(10, "m1", Kind.INVOKED, detail={"op": op, "path": path, **more})
    name = told.add(11, "m1", Kind.OK, zxid=zxid, detail={"op": op, "path": path, "of": asked[1]})
    history = told.history()
    return history, next(event for event in history.events if event.id == name)


def size(op: str, path: str, zxid: int | None, **more: object) -> int:
    history, found = answer(story(), op, path, zxid, **more)
    return payload_bytes(history, [found])


def test_a_znode_brings_what_it_held_when_it_was_read() -> None:
    assert [size("get", "/x", zxid) for zxid in range(7)] == [0, 2, 2, 5, 5, 0, 0]


def test_children_bring_their_names() -> None:
    assert [size("children", "/c", zxid) for zxid in range(8)] == [0, 0, 2, 2, 3, 3, 1, 1]
    assert size("children", "/", 4) == 1


def test_a_multi_read_brings_all_its_parts() -> None:
    parts = [["get", "/x"], ["children", "/c"], ["get", "/nowhere"]]
    assert size("multi_read", "", 4, parts=parts) == 5 + 3


def test_other_operations_bring_nothing() -> None:
    assert [size(op, "/x", 4) for op in ("exists", "create", "set", "delete")] == [0, 0, 0, 0]
    assert size("get", "/x", None) == 0


def test_all_that_is_asked_for_is_added_up() -> None:
    told = story()
    answer(told, "get", "/x", 4)
    history, last = answer(told, "children", "/c", 4)
    answers = [event for event in history.events if event.kind is Kind.OK]
    assert last in answers
    assert payload_bytes(history, answers) == 5 + 3


def test_what_is_no_change_of_a_znode_holds_nothing() -> None:
    told = GroupStory()
    told.session_closed(1, "0x9")
    told.registry(2, Kind.CREATED, "/x", "0x1", detail={"data": "123"})
    told.registry(3, Kind.DELETED, "/x", "0x1", detail={"data": "what it held"})
    for zxid, expected in ((2, 3), (3, 0)):
        history, found = answer(told, "get", "/x", zxid)
        assert payload_bytes(history, [found]) == expected


def test_a_multi_read_whose_question_is_not_told_brings_nothing() -> None:
    told = story()
    name = told.add(11, "m1", Kind.OK, zxid=4, detail={"op": "multi_read", "path": ""})
    history = told.history()
    assert payload_bytes(history, [next(event for event in history.events if event.id == name)]) == 0
