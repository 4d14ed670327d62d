"""Z1: znodes that were deleted while their session stood."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.deletions import doubtful, unasked
from rebalance_lab.checks.znodes import znodes_of
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["registration"]
PATH = "/consumers/g/owners/t/0"


def releasing(ask: Callable[[GroupStory], object]) -> Finding:
    """m1 registers (zxid 1), claims t/0 (zxid 2), and does what `ask` says; t/0 is deleted at zxid 3, at 500 ms. m1
    claims t/1 then (zxid 4)."""
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    ask(story)
    story.releases(500, "m1", 0)
    story.claims(550, "m1", 1)
    story.rest(2000)
    return CHECK.judge(story.history())


def sends(ms: float, path: str = PATH, *, op: str = "delete", session: str = "0x1") -> Callable[[GroupStory], EventId]:
    """It sends a request, by default a `delete`, and gets no answer."""
    detail = {"op": op, "path": path}
    return lambda story: story.add(ms, "m1", Kind.INVOKED, group=None, session=session, detail=detail)


def _refused(story: GroupStory) -> None:
    asked = sends(400)(story)
    detail = {"op": "delete", "path": PATH, "of": asked[1], "error": "NoNode"}
    story.add(410, "m1", Kind.FAILED_OP, group=None, session="0x1", detail=detail)


def _others_first(story: GroupStory) -> None:
    story.asks(300, "m1", "get", PATH)
    story.asks(505, "m1", "delete", PATH, zxid=3)


def _answered_only(story: GroupStory) -> None:
    """The request itself is not recorded."""
    story.add(505, "m1", Kind.OK, group=None, zxid=3, detail={"op": "delete", "path": PATH, "of": 77})


def _counted_and_closes(story: GroupStory) -> None:
    """Of counted operations the close of the session alone is recorded by itself."""
    _counted(400, 600)(story)
    story.asks(900, "m1", "close", "")


def _counted(began_ms: float, ended_ms: float | None, delete: int = 1) -> Callable[[GroupStory], object]:
    """Its operations are only counted, and it is in an attempt."""

    def asks(story: GroupStory) -> None:
        story.begins(began_ms, "m1")
        story.counted(405, "m1", delete=delete, get=3)
        if ended_ms is not None:
            story.ends(ended_ms, "m1")

    return asks


def _counted_and_refused(
    ms: float, *, decided_ms: float | None = 480, code: int = -101
) -> Callable[[GroupStory], object]:
    """ZooKeeper refuses a write of its session as well."""

    def asks(story: GroupStory) -> None:
        story.begins(400, "m1")
        story.counted(405, "m1", delete=2)
        story.refused(ms, "m1", code=code)
        if decided_ms is not None:
            story.decides(decided_ms, "m1", [1])
        story.ends(600, "m1")

    return asks


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (lambda story: story.asks(505, "m1", "delete", PATH, zxid=3), Outcome.CLEAN),
        (lambda story: story.asks(505, "m1", "delete", PATH, zxid=2), Outcome.VIOLATED),
        (lambda story: story.asks(505, "m1", "delete", f"{PATH}1", zxid=3), Outcome.VIOLATED),
        (lambda story: story.asks(505, "m1", "get", PATH, zxid=3), Outcome.VIOLATED),
        (sends(502), Outcome.CLEAN),
        (sends(502.001), Outcome.VIOLATED),
        (sends(400, f"{PATH}1"), Outcome.VIOLATED),
        (sends(400, session="0x11"), Outcome.VIOLATED),
        (sends(400, op="exists"), Outcome.VIOLATED),
        (_refused, Outcome.VIOLATED),
        (_others_first, Outcome.CLEAN),
        (_answered_only, Outcome.CLEAN),
        (_counted_and_closes, Outcome.CLEAN),
        (lambda _story: None, Outcome.CLEAN),  # no operation was recorded
    ],
)
def test_an_owner_znode_goes_because_its_member_asks(ask: Callable[[GroupStory], object], outcome: Outcome) -> None:
    finding = releasing(ask)
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == f"{PATH} was deleted in its session 0x1, but g_m1 had not asked for it"
        assert finding.witness == (("zookeeper", 1), ("zookeeper", 2))


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (_counted(400, 600), Outcome.CLEAN),
        (_counted(400, None), Outcome.CLEAN),
        (_counted(502, 600), Outcome.CLEAN),
        (_counted(502.001, 600), Outcome.VIOLATED),
        (_counted(400, 498), Outcome.CLEAN),
        (_counted(400, 497.999), Outcome.VIOLATED),
        (lambda story: story.counted(505, "m1", delete=1), Outcome.VIOLATED),
        (_counted(400, 600, delete=0), Outcome.UNKNOWN),
    ],
)
def test_where_operations_are_counted_an_attempt_explains_a_deletion(
    ask: Callable[[GroupStory], object], outcome: Outcome
) -> None:
    finding = releasing(ask)
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == f"{PATH} was deleted in its session 0x1, but g_m1 was in no attempt"
        assert finding.witness == (("zookeeper", 1), ("zookeeper", 2))
    if outcome is Outcome.UNKNOWN:
        assert finding.why == "1 owner znodes of m1 were deleted while its session was open, but it asked for 0"


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (_counted_and_refused(450), Outcome.UNKNOWN),
        (_counted_and_refused(398), Outcome.UNKNOWN),
        (_counted_and_refused(397.999), Outcome.CLEAN),
        (_counted_and_refused(477.999), Outcome.UNKNOWN),
        (_counted_and_refused(478), Outcome.CLEAN),  # that may be a claim whose parent is missing
        (_counted_and_refused(590, decided_ms=None), Outcome.UNKNOWN),
        (_counted_and_refused(598, decided_ms=None), Outcome.CLEAN),
        (_counted_and_refused(450, code=-110), Outcome.CLEAN),
    ],
)
def test_where_operations_are_counted_a_release_of_what_has_gone_is_a_doubt(
    ask: Callable[[GroupStory], object], outcome: Outcome
) -> None:
    finding = releasing(ask)
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert finding.why == "m1 tried to release what had already gone (refused at zxid 0x3)"


def test_a_refusal_of_another_session_is_no_doubt() -> None:
    """m2's operations are recorded, or not at all."""

    def asks(story: GroupStory) -> None:
        _counted(400, 600)(story)
        story.joins(100, "m2")
        story.begins(440, "m2")
        story.refused(450, "m2", code=-101)
        story.ends(490, "m2")

    assert releasing(asks).outcome is Outcome.CLEAN


def test_a_refusal_that_says_nothing_hides_no_later_one() -> None:
    def asks(story: GroupStory) -> None:
        _counted_and_refused(450)(story)
        story.refused(300, "m1")

    assert releasing(asks).outcome is Outcome.UNKNOWN


def test_a_counted_process_without_a_member_was_in_no_attempt() -> None:
    story = GroupStory()
    story.add(0, "m1", Kind.CONNECTED, group=None, session="0x1")
    story.counted(5, "m1", delete=1)
    story.claims(50, "m1", 0)
    story.refused(450, "m1", code=-101)
    story.releases(500, "m1", 0)
    history = story.history()
    znodes, _ = znodes_of(history)
    assert [each.witness for each in unasked(history, znodes)] == [(("zookeeper", 0), ("zookeeper", 2))]
    assert doubtful(history, znodes) == []


def test_a_session_that_ends_later_excuses_no_deletion() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    sends(400, f"{PATH}1")(story)
    story.releases(500, "m1", 0)
    story.closed(1000, "m1")
    story.session_closed(1000, "0x1")  # zxid 4
    story.deleted_id(1000, "m1", "0x1", zxid=4)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == f"{PATH} was deleted in its session 0x1, but g_m1 had not asked for it"


def test_under_a_clock_that_drifted_a_deletion_outside_of_attempts_says_nothing() -> None:
    story = GroupStory(wall_drift_us=2001)
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    story.counted(405, "m1", delete=1)
    story.releases(500, "m1", 0)
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


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
    assert finding.why == "/consumers/g/owners/t/1 was deleted in its session 0x1, but g_m1 had not asked for it"
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
    sends(900)(story)
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
    assert finding.why == "/consumers/g/ids/g_m1 was deleted while its session 0x1 was open"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 1)))


def _twice(asked: int) -> Finding:
    """m1 claims t/0 twice, and it is deleted each time. `asked`: how often m1 asked before. No answer is recorded."""
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    for _ in range(asked):
        sends(400)(story)
    story.releases(500, "m1", 0)
    story.claims(600, "m1", 0)
    story.releases(700, "m1", 0)
    story.rest(2000)
    return CHECK.judge(story.history())


def test_a_request_without_an_answer_explains_one_deletion() -> None:
    finding = _twice(1)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 3), ("zookeeper", 4)))
    assert _twice(2).outcome is Outcome.CLEAN


def _writes(zxid: int, op: str = "create") -> Callable[[GroupStory], object]:
    """It sends a `delete` without an answer, and then another request that is answered at `zxid`."""

    def asks(story: GroupStory) -> None:
        sends(300)(story)
        story.asks(600, "m1", op, "/x", zxid=zxid)

    return asks


def _writes_before(story: GroupStory) -> None:
    """The other request is sent before, and answered after."""
    sent = sends(200, "/x", op="create")(story)
    sends(300)(story)
    detail = {"op": "create", "path": "/x", "of": sent[1]}
    story.add(310, "m1", Kind.OK, group=None, session="0x1", zxid=2, detail=detail)


def _writes_in_another_session(story: GroupStory) -> None:
    sends(300)(story)
    sent = sends(310, "/x", op="create", session="0x11")(story)
    detail = {"op": "create", "path": "/x", "of": sent[1]}
    story.add(320, "m1", Kind.OK, group=None, session="0x11", zxid=2, detail=detail)


@pytest.mark.parametrize(
    ("ask", "outcome"),
    [
        (_writes(2), Outcome.VIOLATED),
        (_writes(3), Outcome.VIOLATED),
        (_writes(4), Outcome.CLEAN),
        (_writes(2, "get"), Outcome.CLEAN),  # another server may answer it, which lags behind
        (_writes_before, Outcome.CLEAN),
        (_writes_in_another_session, Outcome.CLEAN),
    ],
)
def test_a_later_write_of_the_session_closes_a_request_without_an_answer(
    ask: Callable[[GroupStory], object], outcome: Outcome
) -> None:
    assert releasing(ask).outcome is outcome


def test_the_first_later_write_closes_it() -> None:
    def asks(story: GroupStory) -> None:
        _writes(2)(story)
        story.asks(700, "m1", "create", "/y", zxid=9)

    assert releasing(asks).outcome is Outcome.VIOLATED


def test_an_owner_znode_in_a_session_that_its_member_never_had() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.registry(50, Kind.CREATED, PATH, "0x7", member="g_m1", group="g", topic="t", partition=0)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] == 2  # and it is not ephemeral
