"""two_controllers, on histories written by hand: brokers b1 and b2, in sessions 0x1 and 0x2."""

from __future__ import annotations

import json
from typing import Any

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE


class Elections(Story):
    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        for number in (1, 2):
            session = f"0x{number}"
            self.add(number, f"b{number}", Kind.CONNECTED, session=session, group=None)
            self.registry(number, Kind.CREATED, f"/brokers/ids/{number}", session, group=None)
        self.registry(3, Kind.CREATED, "/controller_epoch", "0x1", detail={"data": "0"}, group=None)

    def won(self, ms: int, number: int, epoch: int | None, *, names: int | None = None) -> EventId:
        """Broker `number` creates /controller, and raises the epoch in the same transaction, if it does."""
        data = json.dumps({"version": 1, "brokerid": names or number, "timestamp": "1"})
        session = f"0x{number}"
        created = self.registry(ms, Kind.CREATED, "/controller", session, detail={"data": data}, group=None)
        if epoch is not None:
            self.raised(ms, number, epoch, zxid=self._zxid)
        return created

    def raised(self, ms: int, number: int, epoch: int, zxid: int | None = None) -> EventId:
        detail = {"data": str(epoch)}
        return self.registry(ms, Kind.CHANGED, "/controller_epoch", f"0x{number}", detail=detail, group=None, zxid=zxid)

    def went(self, ms: int, number: int) -> None:
        self.registry(ms, Kind.DELETED, "/controller", f"0x{number}", group=None)

    def believes(self, ms: int, number: int, epoch: int) -> EventId:
        return self.add(ms, f"b{number}", CONTROLS, member=f"b{number}", detail={"epoch": epoch}, group=None)

    def resigns(self, ms: int, number: int) -> EventId:
        return self.add(ms, f"b{number}", CONTROLS_NO_MORE, member=f"b{number}", detail={}, group=None)

    def asked(self, ms: int, number: int, kind: Kind = Kind.FAILED_OP, *, zxid: int | None = None) -> None:
        parts = [["create", "/controller"], ["set", "/controller_epoch"]]
        actor = f"b{number}"
        asked = self.add(ms, actor, Kind.INVOKED, detail={"op": "multi", "parts": parts, "path": ""}, group=None)
        self.add(ms + 2, actor, kind, detail={"op": "multi", "of": asked[1]}, group=None, zxid=zxid)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["two_controllers"].judge(self.history())


def test_elections_with_one_winner_each() -> None:
    story = Elections()
    story.asked(9, 1, Kind.OK)
    story.won(10, 1, 1)
    story.asked(11, 2)
    story.believes(12, 1, 1)
    story.went(50, 1)
    story.resigns(51, 1)
    story.asked(59, 2, Kind.OK)
    story.won(60, 2, 2)
    story.believes(62, 2, 2)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "elections": 2, "contested": 1}


def test_two_brokers_that_believe_in_one_epoch() -> None:
    story = Elections()
    won = story.won(10, 1, 1)
    story.believes(12, 1, 1)
    wrong = story.believes(13, 2, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "b2 believes that it controls in epoch 1, which b1 has won"


def test_a_belief_in_an_epoch_that_nobody_has_won() -> None:
    story = Elections()
    story.won(10, 1, 1)
    wrong = story.believes(13, 2, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (wrong,))


@pytest.mark.parametrize("second", [1, 3])
def test_an_epoch_that_is_used_again_or_left_out(second: int) -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.went(50, 1)
    story.won(60, 2, second)
    assert story.found().outcome is Outcome.VIOLATED


def test_an_election_without_an_epoch() -> None:
    story = Elections()
    created = story.won(10, 1, None)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (created,))
    assert finding.why == "/controller was created for broker 1, and no epoch was raised for it"


@pytest.mark.parametrize(
    ("form", "outcome"), [("1.1", Outcome.CLEAN), ("0.8.2", Outcome.CLEAN), ("2.1", Outcome.VIOLATED)]
)
def test_a_broker_that_is_taken_down_before_it_has_raised_the_epoch(form: str, outcome: Outcome) -> None:
    story = Elections(form=form)
    story.won(10, 1, 1 if form == "2.1" else None)
    if form != "2.1":
        story.raised(11, 1, 1)
    story.believes(12, 1, 1)
    story.rest(9000)
    story.phase(9100, "closing")
    story.went(9150, 1)
    story.won(9151, 2, None)
    assert CHECKS["two_controllers"].judge(story.history()).outcome is outcome


def test_an_older_form_needs_an_epoch_before_the_trial_closes() -> None:
    story = Elections(form="1.1")
    created = story.won(10, 1, None)
    story.rest(9000)
    story.phase(9100, "closing")
    finding = CHECKS["two_controllers"].judge(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (created,))


@pytest.mark.parametrize(("late", "outcome"), [(False, Outcome.CLEAN), (True, Outcome.VIOLATED)])
def test_an_epoch_that_is_raised_when_the_znode_has_gone(late: bool, outcome: Outcome) -> None:
    """The older forms raise it by a write of its own, and do not ask whether the znode is still there."""
    story = Elections(form="1.1")
    story.won(10, 1, None)
    if not late:
        story.raised(12, 1, 1)
        story.believes(13, 1, 1)
        story.resigns(21, 1)
    story.went(20, 1)
    story.won(30, 2, None)
    story.raised(32, 2, 1 if late else 2)
    story.believes(33, 2, 1 if late else 2)
    if late:
        story.raised(40, 1, 2)
        story.believes(41, 1, 2)
    finding = story.found()
    assert finding.outcome is outcome
    assert not late or "after its /controller had gone" in finding.why


def test_an_epoch_without_an_election() -> None:
    story = Elections()
    story.won(10, 1, 1)
    wrong = story.raised(20, 2, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (wrong,))


def test_a_znode_that_names_another_broker() -> None:
    story = Elections()
    created = story.won(10, 2, 1, names=1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (created,))
    assert finding.why == "/controller names broker 1, and broker 2 has created it"


def test_a_history_without_an_election_is_not_looked_at() -> None:
    assert not CHECKS["two_controllers"].applies(Elections().history())


def comes_back(story: Elections, ms: int, number: int, session: str) -> None:
    """The process of a broker, which was killed, starts again, and registers in a session of its own."""
    story.killed(ms, f"b{number}")
    story.add(ms + 5, f"b{number}", Kind.CONNECTED, session=session, group=None)
    story.registry(ms + 6, Kind.DELETED, f"/brokers/ids/{number}", f"0x{number}", group=None)
    story.registry(ms + 7, Kind.CREATED, f"/brokers/ids/{number}", session, group=None)


def test_a_broker_takes_the_znode_of_its_former_session_for_its_own() -> None:
    """KAFKA-4229: it is back before the session has expired in which it had won."""
    story = Elections()
    won = story.won(10, 1, 1)
    story.believes(12, 1, 1)
    comes_back(story, 50, 1, "0x11")
    wrong = story.believes(60, 1, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "b1 believes in session 0x11 that it controls in epoch 1, which it has won in session 0x1"


def test_a_broker_reigns_before_it_is_elected() -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    story.resigns(30, 1)
    early = story.believes(40, 2, 2)
    story.went(50, 1)
    won = story.won(60, 2, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (early, won))
    assert finding.why == "b2 believes that it controls in epoch 2 before its election, by 0.020 s"


def test_registry_times_may_be_late_by_what_the_clocks_tolerate() -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.believes(8, 1, 1)
    assert story.found().outcome is Outcome.CLEAN


def test_the_elected_broker_does_not_know_of_it() -> None:
    """Its multi was done, the reply was lost, and it took the refusal of the next one for the victory of another."""
    story = Elections()
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    story.went(50, 1)
    won = story.won(60, 2, 2)
    story.resigns(61, 1)
    rest = story.rest(9000)
    finding = CHECKS["two_controllers"].judge(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, rest))
    assert finding.why == "at rest b2, which has won epoch 2, does not control"


def test_a_deposed_controller_reigns_on() -> None:
    story = Elections()
    story.won(10, 1, 1)
    old = story.believes(12, 1, 1)
    story.went(50, 1)
    story.won(60, 2, 2)
    story.believes(62, 2, 2)
    rest = story.rest(9000)
    finding = CHECKS["two_controllers"].judge(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (old, rest))
    assert finding.why == "at rest b1 believes that it controls in epoch 1, and epoch 2 has begun"


def test_a_deposed_controller_that_stands_still_need_not_know() -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    story.paused(40, 9500, "b1")
    story.went(50, 1)
    story.won(60, 2, 2)
    story.believes(62, 2, 2)
    story.rest(9000)
    assert CHECKS["two_controllers"].judge(story.history()).outcome is Outcome.CLEAN


def test_a_deposed_controller_whose_session_is_gone_need_not_know() -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    story.registry(49, Kind.DELETED, "/brokers/ids/1", "0x1", group=None)
    story.went(50, 1)
    story.won(60, 2, 2)
    story.believes(62, 2, 2)
    story.rest(9000)
    assert CHECKS["two_controllers"].judge(story.history()).outcome is Outcome.CLEAN


def test_an_election_a_moment_before_the_rest_is_none_of_it() -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    story.went(8400, 1)
    story.resigns(8401, 1)
    story.won(8500, 2, 2)
    story.rest(9000)
    assert CHECKS["two_controllers"].judge(story.history()).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("reigns_ms", "outcome"), [(3000, Outcome.VIOLATED), (900, Outcome.CLEAN)])
def test_a_winner_that_never_controls_though_it_has_gone_by_the_rest(reigns_ms: int, outcome: Outcome) -> None:
    story = Elections()
    won = story.won(10, 1, 1)
    story.went(10 + reigns_ms, 1)
    story.won(4000, 2, 2)
    story.believes(4002, 2, 2)
    finding = story.found()
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert (finding.why, finding.witness) == ("b1 has won epoch 1, and never controlled in it", (won,))


def answered(until_ms: int) -> Elections:
    """b1 wins epoch 1, is answered at 12 ms, and never says that it controls."""
    story = Elections()
    won = story.won(10, 1, 1)
    story.asked(10, 1, Kind.OK, zxid=story._zxid)
    assert won == ("zookeeper", 3)
    story.went(until_ms, 1)
    story.won(until_ms + 5, 2, 2)
    story.believes(until_ms + 8, 2, 2)
    return story


def test_a_winner_that_is_answered_believes_it_before_a_second_is_over() -> None:
    for until_ms, outcome in ((111, Outcome.CLEAN), (112, Outcome.VIOLATED)):
        finding = answered(until_ms).found()
        assert finding.outcome is outcome
        if outcome is Outcome.VIOLATED:
            assert finding.witness == (("zookeeper", 3),)
            assert finding.why == "b1 has won epoch 1, and never controlled in it"


def test_a_winner_that_fails_after_the_answer() -> None:
    story = answered(400)
    story.killed(100, "b1")
    assert story.found().outcome is Outcome.CLEAN


@pytest.mark.parametrize(("closing_ms", "outcome"), [(5, Outcome.CLEAN), (60, Outcome.CLEAN), (350, Outcome.VIOLATED)])
def test_a_winner_that_is_being_taken_down_need_not_control(closing_ms: int, outcome: Outcome) -> None:
    """It is answered at 12 ms, its log is closed at 300 ms, and its session later, as on a slow disk."""
    story = answered(400)
    story._world = "containers"
    story.add(300, "b1", Kind.WARNED, group=None)
    story.phase(closing_ms, "closing")
    assert story.found().outcome is outcome


def test_a_live_winner_may_have_to_wait_for_a_core() -> None:
    for recorded, outcome in ((False, Outcome.CLEAN), (True, Outcome.VIOLATED)):
        story = answered(400)
        story._world = "processes"
        if recorded:
            story.add(300, "b1", Kind.WARNED, group=None)
        assert story.found().outcome is outcome
