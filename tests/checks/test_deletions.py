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


def _others_first(story: GroupStory) -> None:
    story.asks(300, "m1", "get", PATH)
    story.asks(505, "m1", "delete", PATH, zxid=3)


def _answered_only(story: GroupStory) -> None:
    """The request itself is not recorded."""
    story.add(505, "m1", Kind.OK, group=None, zxid=3, detail={"op": "delete", "path": PATH, "of": 77})


def _counted_and_closes(story: GroupStory) -> None:
    """Of counted operations the close of the session alone is recorded by itself."""
    story.counted(505, "m1", delete=1)
    story.asks(900, "m1", "close", "")


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
        (_others_first, Outcome.CLEAN),
        (_answered_only, Outcome.CLEAN),
        (lambda story: story.counted(505, "m1", get=3), Outcome.CLEAN),
        (_counted_and_closes, Outcome.CLEAN),
        (lambda _story: None, Outcome.CLEAN),  # no operation was recorded
    ],
)
def test_an_owner_znode_goes_because_its_member_asks(ask: Callable[[GroupStory], object], outcome: Outcome) -> None:
    finding = releasing(ask)
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == f"{PATH} was deleted in its session 0x1, and g_m1 had not asked for it"
        assert finding.witness == (("zookeeper", 1), ("zookeeper", 2))


def test_each_deletion_needs_a_request_of_its_own() -> None:
    """m1 asks for t/0 and t/2, and t/1 and t/3 are deleted too. The one that was created first is reported."""
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0, 1, 2, 3)  # zookeeper/1 to /4
    story.releases(500, "m1", 0, 3, 2, 1)  # zxids 6 to 9
    story.asks(505, "m1", "delete", PATH, zxid=6)
    story.asks(506, "m1", "delete", "/consumers/g/owners/t/2", zxid=8)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == "/consumers/g/owners/t/1 was deleted in its session 0x1, and g_m1 had not asked for it"
    assert (finding.witness, finding.measures["count"]) == ((("zookeeper", 2), ("zookeeper", 8)), 2)


def test_what_outlived_its_session_hides_no_later_deletion() -> None:
    story = GroupStory()
    for ms, actor, partition in ((0, "m1", 0), (10, "m2", 1)):
        story.joins(ms, actor)
        story.claims(ms + 5, actor, partition)
    story.session_closed(500, "0x1")
    story.releases(600, "m1", 0)
    story.asks(605, "m2", "get", PATH)
    story.releases(700, "m2", 1)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    # m1's id and t/0 outlived the session, and t/1 was deleted though m2 had not asked.
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 3)


@pytest.mark.parametrize(("wall_drift_us", "outcome"), [(2000, Outcome.VIOLATED), (2001, Outcome.UNKNOWN)])
def test_under_a_clock_that_drifted_a_request_may_have_come_before(wall_drift_us: int, outcome: Outcome) -> None:
    story = GroupStory(wall_drift_us=wall_drift_us)
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    _asks(900)(story)
    story.releases(500, "m1", 0)
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is outcome


def test_an_id_is_never_deleted_while_its_session_stands() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.goes(500, "m1")
    story.closed(600, "m1")
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == "/consumers/g/ids/g_m1 was deleted while its session 0x1 stood"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 1)))


@pytest.mark.parametrize("closes", [False, True])
def test_where_operations_are_counted_a_deletion_after_the_kill_is_a_doubt(closes: bool) -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.counted(20, "m1", create=1)
    if closes:  # an older session of the process
        story.asks(30, "m1", "close", "")
    story.claims(50, "m1", 0)
    story.killed(400, "m1")
    story.releases(500, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 4
    story.deleted_id(900, "m1", "0x1", zxid=4)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert f"{PATH} was deleted after g_m1 was killed, and its operations were not recorded" in finding.why


def test_where_operations_are_recorded_a_request_from_before_the_kill_explains_a_deletion_after_it() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0, 1)
    story.observed(300, "m1")
    story.observed_owners(300, {0: "m1", 1: "m1"})
    _asks(399)(story)
    story.killed(400, "m1")
    story.releases(500, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 5
    story.deleted_id(900, "m1", "0x1", zxid=5)
    story.deleted(900, "m1", 1, "0x1", zxid=5)
    story.observed(1000)
    story.observed_owners(1000, {})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert "after g_m1 was killed" not in finding.why
    assert finding.outcome is Outcome.CLEAN


def test_an_owner_znode_in_a_session_that_its_member_never_had() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.registry(50, Kind.CREATED, PATH, "0x7", member="g_m1", group="g", topic="t", partition=0)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] == 2  # and it is not ephemeral
