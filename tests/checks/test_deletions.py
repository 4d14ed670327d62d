"""Z1: znodes that were deleted while their session stood."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

CHECK = CHECKS["registration"]
PATH = "/consumers/g/owners/t/0"


def releasing(ask: Callable[[GroupStory], object]) -> Finding:
    """m1 registers (zxid 1), claims t/0 (zxid 2), and does what `ask` says; t/0 is deleted at zxid 3, at 500 ms."""
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    ask(story)
    story.releases(500, "m1", 0)
    story.rest(2000)
    return CHECK.judge(story.history())


def _asks(ms: float, path: str = PATH) -> Callable[[GroupStory], object]:
    """It sends a `delete` and hears no answer."""
    detail = {"op": "delete", "path": path}
    return lambda story: story.add(ms, "m1", Kind.INVOKED, group=None, detail=detail)


def _refused(story: GroupStory) -> None:
    asked = story.add(400, "m1", Kind.INVOKED, group=None, detail={"op": "delete", "path": PATH})
    detail = {"op": "delete", "path": PATH, "of": asked[1], "error": "NoNode"}
    story.add(410, "m1", Kind.FAILED_OP, group=None, detail=detail)


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (lambda story: story.asks(505, "m1", "delete", PATH, zxid=3), Outcome.CLEAN),
        (lambda story: story.asks(505, "m1", "delete", PATH, zxid=2), Outcome.VIOLATED),
        (lambda story: story.asks(505, "m1", "delete", f"{PATH}1", zxid=3), Outcome.VIOLATED),
        (lambda story: story.asks(505, "m1", "get", PATH, zxid=3), Outcome.VIOLATED),
        (_asks(502), Outcome.CLEAN),
        (_asks(502.001), Outcome.VIOLATED),
        (_asks(400, f"{PATH}1"), Outcome.VIOLATED),
        (_refused, Outcome.VIOLATED),
        (lambda story: story.counted(505, "m1", get=3), Outcome.CLEAN),
        (lambda _story: None, Outcome.CLEAN),  # no operation was recorded
    ],
)
def test_an_owner_znode_goes_because_its_member_asks(ask: Callable[[GroupStory], object], outcome: Outcome) -> None:
    finding = releasing(ask)
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == f"{PATH} was deleted in its session 0x1, and g_m1 had not asked for it"
        assert finding.witness == (("zookeeper", 1), ("zookeeper", 2))


def test_an_id_is_never_deleted_while_its_session_stands() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.goes(500, "m1")
    story.closed(600, "m1")
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == "/consumers/g/ids/g_m1 was deleted while its session 0x1 stood"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 1)))


def test_where_operations_are_counted_a_deletion_after_the_kill_is_a_doubt() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    story.killed(400, "m1")
    story.releases(500, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 4
    story.deleted_id(900, "m1", "0x1", zxid=4)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert f"{PATH} was deleted after g_m1 was killed, and its operations were not recorded" in finding.why


def test_an_owner_znode_in_a_session_that_its_member_never_had() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.registry(50, Kind.CREATED, PATH, "0x7", member="g_m1", group="g", topic="t", partition=0)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] == 2  # and it is not ephemeral
