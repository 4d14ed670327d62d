"""Transactions of the registry that a history leaves out, and znodes in a session of another than their member."""

from __future__ import annotations

import pytest
from history_story import Story

from rebalance_lab.checks.completeness import lost_transactions, strangers
from rebalance_lab.history.events import Kind


def recorded(*zxids: int, passed: int | None = None) -> Story:
    """The registry's transactions of these zxids; `passed`: of the last."""
    story = Story()
    for partition, zxid in enumerate(zxids):
        detail = {"ephemeral": True, "passed": passed if zxid == zxids[-1] else None}
        story.created(10 * partition, "m1", partition, zxid=zxid, detail=detail)
    return story


def lost(story: Story) -> list[str]:
    return lost_transactions(story.history())


def test_a_gap_is_told_with_its_size() -> None:
    assert lost(recorded(5, 6, 10, 20)) == ["3 of the registry's transactions between 0x6 and 0xa are missing"]


@pytest.mark.parametrize(("passed", "missing"), [(None, 3), (1, 2), (2, 1), (3, 0), (4, 0)])
def test_transactions_without_an_event_are_counted_in_the_next(passed: int | None, missing: int) -> None:
    why = f"{missing} of the registry's transactions between 0x5 and 0x9 are missing"
    assert lost(recorded(5, 9, passed=passed)) == ([why] if missing else [])


def test_each_epoch_is_counted_for_itself() -> None:
    assert lost(recorded(5, 1 << 32 | 1, 1 << 32 | 2)) == []
    assert lost(recorded(5, 1 << 32 | 1, 1 << 32 | 3)) == [
        "1 of the registry's transactions between 0x100000001 and 0x100000003 are missing"
    ]


@pytest.mark.parametrize(
    ("zxid", "missing"),
    [
        (4, False),  # from before the history
        (5, False),
        (6, False),  # passed over
        (7, False),
        (8, False),
        (9, True),
        (0, False),
        (1 << 32, False),  # an election
        (2 << 32, False),
        (1 << 32 | 1, True),
        (1 << 31, True),
    ],
)
@pytest.mark.parametrize("how", ["zxid", "members_zxid", "owners_zxid"])
def test_what_somebody_saw_is_recorded_or_passed_over_or_from_before(how: str, zxid: int, missing: bool) -> None:
    story = recorded(5, 8, passed=2)
    story.add(30, "m1", Kind.OK, **{"zxid": zxid} if how == "zxid" else {"detail": {how: zxid}})
    story.add(40, "m1", Kind.OK, zxid=8)
    why = f"the registry's transaction {zxid:#x} is missing: m1's event 0 saw it"
    assert lost(story) == ([why] if missing else [])


def test_each_that_an_event_names_is_looked_for() -> None:
    story = recorded(5)
    story.observed_owners(30, {0: "m1"}, {0: "0x1"}, zxid=5)
    assert lost(story) == []
    detail = {"members_zxid": None, "owners_zxid": 6}
    story.add(40, "runner", Kind.OBSERVED, zxid=5, detail=detail)
    assert lost(story) == ["the registry's transaction 0x6 is missing: runner's event 1 saw it"]


def test_where_the_registry_recorded_nothing_nothing_is_lost() -> None:
    story = Story()
    story.add(30, "m1", Kind.OK, zxid=7)
    assert lost(story) == []


@pytest.mark.parametrize("owner", [False, True])
@pytest.mark.parametrize(("session", "process"), [("0x2", "m2"), ("0x3", "runner")])
def test_a_znode_in_the_session_of_another_is_a_stranger(owner: bool, session: str, process: str) -> None:
    story = Story()
    for actor in ("m1", "m2"):
        story.started(0, actor)
        story.member(1, actor, Kind.CONNECTED, session=f"0x{actor[1:]}")
    story.add(1, "runner", Kind.CONNECTED, session="0x3")
    story.created_id(10, "m1", "0x1")
    story.created(20, "m2")
    assert strangers(story.history()) == []
    if owner:
        story.created(30, "m1", 1, session)
        what = f"t/1 is claimed for g_m1 in session {session}"
    else:
        story.created_id(30, "m1", session)
        what = f"g_m1 is registered by session {session}"
    assert strangers(story.history()) == [f"{what} of {process}, but {process} did not start g_m1"]


def test_a_znode_of_no_member_hides_no_stranger() -> None:
    story = Story(recorded=False)
    story.registry(5, Kind.CREATED, "/brokers/topics/t", "0xff", topic="t")
    story.created(30, "m1", session="0x3")
    assert strangers(story.history()) == ["t/0 is claimed for g_m1 in session 0x3, which no process recorded"]
