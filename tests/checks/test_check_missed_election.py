"""missed_election, on histories written by hand: brokers b1, b2 and b3; b1 is the controller and goes."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

GONE = 5000


class Failover(Story):
    def __init__(self) -> None:
        super().__init__()
        for number in (1, 2, 3):
            session = f"0x{number}"
            self.add(number, f"b{number}", Kind.CONNECTED, session=session, group=None)
            self.registry(number, Kind.CREATED, f"/brokers/ids/{number}", session, group=None)
        self.elected(10, 1)

    def elected(self, ms: int, number: int) -> EventId:
        data = json.dumps({"version": 1, "brokerid": number, "timestamp": "1"})
        return self.registry(ms, Kind.CREATED, "/controller", f"0x{number}", detail={"data": data}, group=None)

    def went(self, ms: int = GONE, number: int = 1) -> EventId:
        return self.registry(ms, Kind.DELETED, "/controller", f"0x{number}", group=None)

    def session_ended(self, ms: int, number: int) -> None:
        self.registry(ms, Kind.SESSION_CLOSED, None, f"0x{number}", group=None)

    def looks(
        self, ms: int, number: int, *, watch: bool = True, zxid: int | None = None, stands: bool = True
    ) -> EventId:
        """A look that is answered 2 ms later, by default with the last transaction. `stands`: the broker asks to create
        the znode then."""
        actor, detail = f"b{number}", {"op": "exists", "path": "/controller"}
        asked = self.add(ms, actor, Kind.INVOKED, detail={**detail, "watch": True} if watch else detail, group=None)
        answer = {**detail, "of": asked[1]}
        found = self.add(ms + 2, actor, Kind.OK, detail=answer, zxid=self._zxid if zxid is None else zxid, group=None)
        if stands:
            parts = [["create", "/controller"], ["set", "/controller_epoch"]]
            self.add(ms + 3, actor, Kind.INVOKED, detail={"op": "multi", "parts": parts, "path": ""}, group=None)
        return found

    def reads(self, ms: int, number: int) -> EventId:
        """A read of the znode that is answered at once, with the last transaction."""
        actor, detail = f"b{number}", {"op": "get", "path": "/controller"}
        asked = self.add(ms, actor, Kind.INVOKED, detail=detail, group=None)
        return self.add(ms, actor, Kind.OK, detail={**detail, "of": asked[1]}, zxid=self._zxid, group=None)

    def found(self) -> Finding | None:
        self.phase(9000, "closing")
        self.rest(9001)
        history = self.history()
        check = CHECKS["missed_election"]
        return check.judge(history) if check.applies(history) else None


def outcome(story: Failover) -> Outcome | None:
    finding = story.found()
    return None if finding is None else finding.outcome


def test_all_look_again() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(5006, 3)
    finding = story.found()
    assert finding is not None
    assert finding.outcome is Outcome.CLEAN
    assert (finding.measures["looks"], finding.measures["deletions"]) == (2, 1)


@pytest.mark.parametrize("restarted_ms", [None, GONE + 500])
def test_a_dead_broker_whose_session_goes_on_need_not_look(restarted_ms: int | None) -> None:
    """It was killed before, and its session has not expired yet."""
    story = Failover()
    story.killed(GONE - 500, "b3")
    if restarted_ms is not None:
        began = story.fault(restarted_ms, "restart", "b3")
        story.bit(restarted_ms, "restart", "b3", began)
        story.ended(restarted_ms, "restart", "b3", began)
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    assert outcome(story) is Outcome.CLEAN


def test_one_does_not() -> None:
    story = Failover()
    before = story.looks(20, 3)
    story.session_ended(GONE, 1)
    gone = story.went()
    story.looks(5005, 2)
    finding = story.found()
    assert finding is not None
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (gone, before))
    assert finding.why == "/controller went, and b3, which was registered and connected, did not look again"


def test_a_look_without_a_watch_is_none() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(5006, 3, watch=False)
    assert outcome(story) is Outcome.VIOLATED


def test_a_look_that_shows_the_tree_before_the_deletion_is_none() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(5006, 3, zxid=story._zxid - 2)
    assert outcome(story) is Outcome.VIOLATED


def test_each_deletion_asks_for_a_look() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(5006, 3)
    story.elected(5010, 2)
    story.looks(5015, 3)
    story.session_ended(7000, 2)
    story.went(7000, 2)
    assert outcome(story) is Outcome.VIOLATED


def test_a_broker_that_a_fault_disturbs_need_not_look() -> None:
    story = Failover()
    story.paused(4000, 8800, "b3")
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    finding = story.found()
    assert finding is not None
    assert finding.measures["count"] == 0


def test_too_short_a_time_is_not_judged() -> None:
    story = Failover()
    story.session_ended(8500, 1)
    story.went(8500)
    assert outcome(story) is None


def test_who_loses_its_connection_soon_after_is_not_judged() -> None:
    """A server that stands still notifies nobody. Found by `make soak`."""
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.add(GONE + 897, "b3", Kind.DISCONNECTED, session="0x3", group=None)
    story.session_ended(GONE + 2500, 3)
    finding = story.found()
    assert finding is not None
    assert (finding.outcome, finding.measures["looks"]) == (Outcome.CLEAN, 1)


def test_who_loses_its_connection_later_is() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.add(GONE + 1500, "b3", Kind.DISCONNECTED, session="0x3", group=None)
    assert outcome(story) is Outcome.VIOLATED


def test_who_has_no_connection_is_not_judged_and_who_is_back_is() -> None:
    absent, back = Failover(), Failover()
    for story in (absent, back):
        story.add(GONE - 100, "b3", Kind.DISCONNECTED, session="0x3", group=None)
    back.add(GONE - 50, "b3", Kind.CONNECTED, session="0x3", group=None)
    for story in (absent, back):
        story.session_ended(GONE, 1)
        story.went()
        story.looks(5005, 2)
    assert outcome(absent) is Outcome.CLEAN
    assert outcome(back) is Outcome.VIOLATED


def test_who_sees_that_nobody_was_elected_must_stand() -> None:
    """It watches, it is told, it looks again: and leaves the election to the others."""
    story = Failover()
    story.session_ended(GONE, 1)
    gone = story.went()
    story.looks(5005, 2)
    idle = story.looks(5006, 3, stands=False)
    story.elected(5010, 2)
    finding = story.found()
    assert finding is not None
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (gone, idle))
    assert finding.why == "/controller went, and b3 saw that nobody had been elected, and did not ask to create it"


def test_nobody_stands_and_the_cluster_has_no_controller() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2, stands=False)
    story.looks(5006, 3, stands=False)
    finding = story.found()
    assert finding is not None
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 2)


def test_who_looks_after_the_election_need_not_stand() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.elected(5010, 2)
    story.looks(5015, 3, stands=False)
    assert outcome(story) is Outcome.CLEAN


def test_who_reads_then_that_another_was_faster_need_not_stand() -> None:
    """As Kafka does: it looks whether the znode is there, and then who holds it."""
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(5006, 3, stands=False)
    story.elected(5010, 2)
    story.reads(5012, 3)
    assert outcome(story) is Outcome.CLEAN


def test_who_looks_late_may_be_about_to_stand() -> None:
    story = Failover()
    story.session_ended(GONE, 1)
    story.went()
    story.looks(5005, 2)
    story.looks(8400, 3, stands=False)
    assert outcome(story) is Outcome.CLEAN
