"""deposed_successor, on histories written by hand: brokers b1 and b2, in sessions 0x1 and 0x2."""

from __future__ import annotations

import pytest
from test_check_two_controllers import Elections

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind


def deleted(story: Elections, ms: int, session: str) -> EventId:
    return story.registry(ms, Kind.DELETED, "/controller", session, group=None)


def found(story: Elections) -> Finding:
    story.rest(9000)
    return CHECKS["deposed_successor"].judge(story.history())


def test_a_controller_that_deletes_its_own_znode() -> None:
    story = Elections()
    story.won(10, 1, 1)
    deleted(story, 20, "0x1")
    story.won(30, 2, 2)
    finding = found(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "ended": 1})
    assert finding.why == "no broker ended the reign of another, of 1 that ended"


def test_a_broker_that_deletes_the_znode_of_another() -> None:
    story = Elections()
    story.won(10, 1, 1)
    deleted(story, 20, "0x1")
    won = story.won(30, 2, 2)
    wrong = deleted(story, 40, "0x1")
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "broker 1 deleted /controller, which broker 2 had created"


def test_a_broker_that_deletes_the_znode_of_another_in_its_next_session() -> None:
    story = Elections()
    story.won(10, 1, 1)
    deleted(story, 20, "0x1")
    for session in ("0x1", "0x11"):
        story.add(21, "b1", Kind.CONNECTED, session=session, group=None)
    won = story.won(30, 2, 2)
    wrong = deleted(story, 40, "0x11")
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "b1 deleted /controller, which broker 2 had created"


def test_a_controller_whose_znode_is_written_over() -> None:
    story = Elections()
    story.won(10, 1, 1)
    deleted(story, 20, "0x1")
    won = story.won(30, 2, 2)
    wrong = story.registry(40, Kind.CHANGED, "/controller", "0x1", group=None)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (won, wrong))
    assert finding.why == "broker 1 wrote over /controller, which broker 2 had created"


@pytest.mark.parametrize("session", ["0x77", None], ids=["a client", "nobody known"])
def test_an_operator_may_delete_it(session: str | None) -> None:
    story = Elections()
    story.won(10, 1, 1)
    story.registry(20, Kind.DELETED, "/controller", session or "", group=None)
    assert found(story).outcome is Outcome.CLEAN


def test_without_an_election_there_is_nothing_to_judge() -> None:
    story = Elections()
    story.rest(9000)
    assert not CHECKS["deposed_successor"].applies(story.history())
