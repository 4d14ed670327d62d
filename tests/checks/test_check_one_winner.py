"""one_winner, on histories written by hand: brokers b1 and b2, in sessions 0x1 and 0x2."""

from __future__ import annotations

from test_check_two_controllers import Elections

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


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
