"""one_winner, on histories written by hand: brokers b1 and b2, in sessions 0x1 and 0x2."""

from __future__ import annotations

from test_check_two_controllers import Elections

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind


def found(story: Elections) -> Finding:
    story.rest(9000)
    return CHECKS["one_winner"].judge(story.history())


def race(story: Elections) -> None:
    """Both ask, and b1 wins epoch 1."""
    story.asked(9, 1, Kind.OK)
    story.won(10, 1, 1)
    story.asked(11, 2)


def test_two_ask_and_one_wins() -> None:
    story = Elections()
    race(story)
    story.believes(12, 1, 1)
    finding = found(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "contested": 1, "rivals": 2})


def test_the_loser_reigns_as_well() -> None:
    story = Elections()
    story.asked(9, 1, Kind.OK)
    won = story.won(10, 1, 1)
    story.asked(11, 2)
    story.believes(12, 1, 1)
    wrong = story.believes(14, 2, 1)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "b1 won the election of epoch 1, and b2 reigns in it as well"


def test_the_loser_reigns_later_in_an_epoch_of_its_own() -> None:
    story = Elections()
    race(story)
    story.believes(12, 1, 1)
    story.went(50, 1)
    story.won(60, 2, 2)
    story.believes(62, 2, 2)
    assert found(story).outcome is Outcome.CLEAN


def test_a_race_that_one_broker_runs_is_none() -> None:
    story = Elections()
    story.asked(9, 1, Kind.OK)
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    assert not CHECKS["one_winner"].applies(story.history())


def test_without_rest_nothing_is_said() -> None:
    story = Elections()
    race(story)
    assert CHECKS["one_winner"].judge(story.history()).outcome is Outcome.UNKNOWN


def looked(story: Elections, ms: int, number: int, zxid: int) -> EventId:
    """A look at `/controller` that sets a watch, answered at the zxid."""
    actor, detail = f"b{number}", {"op": "exists", "path": "/controller", "watch": True}
    asked = story.add(ms, actor, Kind.INVOKED, session=f"0x{number}", group=None, detail=detail)
    answer = {"op": "exists", "path": "/controller", "of": asked[1]}
    return story.add(ms + 1, actor, Kind.OK, session=f"0x{number}", group=None, zxid=zxid, detail=answer)


def read(story: Elections, ms: int, number: int, zxid: int) -> None:
    detail = {"op": "get", "path": "/controller", "of": -1}
    story.add(ms, f"b{number}", Kind.OK, session=f"0x{number}", group=None, zxid=zxid, detail=detail)


def aside(*, zxid: int = 3) -> tuple[Elections, EventId]:
    """b1 wins epoch 1 in transaction 4. Before that b2 has looked, and it does not ask."""
    story = Elections()
    look = looked(story, 7, 2, zxid)
    story.asked(9, 1, Kind.OK)
    story.won(10, 1, 1)
    story.believes(12, 1, 1)
    return story, look


def test_a_broker_that_sees_nobody_and_does_not_ask() -> None:
    story, look = aside()
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (look, ("zookeeper", 3)))
    assert finding.why == "b2 saw before the election of epoch 1 that nobody controlled, and did not ask"


def test_who_sees_the_winner_need_not_ask() -> None:
    story, _ = aside(zxid=4)
    assert not CHECKS["one_winner"].applies(story.history())
    story, _ = aside()
    read(story, 11, 2, 4)
    assert found(story).outcome is Outcome.CLEAN


def test_a_later_election_makes_up_for_nothing() -> None:
    for looks_again, outcome in ((False, Outcome.CLEAN), (True, Outcome.VIOLATED)):
        story, _ = aside()
        if looks_again:
            looked(story, 1500, 2, 4)
        story.asked(2000, 2)
        assert found(story).outcome is outcome


def test_a_broker_that_fails_after_its_look_cannot_ask() -> None:
    story, _ = aside()
    story.add(500, "b2", Kind.DISCONNECTED, session="0x2", group=None)
    assert found(story).outcome is Outcome.CLEAN


def test_a_deposed_controller_is_judged_by_its_next_look() -> None:
    """b1 resigns by its first look, and does not ask: it may, if the next one comes after b2's election."""
    for next_zxid, outcome in ((6, Outcome.CLEAN), (5, Outcome.VIOLATED)):
        story = Elections()
        race(story)
        story.believes(12, 1, 1)
        story.went(50, 1)
        looked(story, 52, 1, 5)
        story.resigns(54, 1)
        looked(story, 55, 1, next_zxid)
        looked(story, 56, 2, 5)
        story.asked(58, 2, Kind.OK)
        story.won(60, 2, 2)
        story.believes(62, 2, 2)
        assert found(story).outcome is outcome, next_zxid
