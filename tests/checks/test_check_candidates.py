"""ahead_of_isr where a replica joins the ISR, on histories written by hand: partition t-0, led by b1 in leader epoch 1,
with b2 in sync and b3 as a follower that comes back. Each replica that the state znode has in the ISR may lead next."""

from __future__ import annotations

import pytest
from broker_story import Brokers

from rebalance_lab.checks import Outcome
from rebalance_lab.history.events import EventId
from rebalance_lab.history.replicas import APPENDED, COMMITTED, REPLICATED, TRUNCATED


class Joining(Brokers):
    """The records 0 to 9 are committed at 50 ms."""

    def __init__(self, *, end: int = 0, high_watermark: int = 0) -> None:
        super().__init__()
        for number in (1, 2, 3):
            self.registered(10, number)
        self.state(20, 1, 1, 1, 2)
        self.leads(30, 1, 1, 1, 2, end=end, high_watermark=high_watermark)
        self.follows(30, 2, 1, 1)

    def committed_to_ten(self) -> EventId:
        self.broker(40, 1, APPENDED, leader_epoch=1, first=0, last=9)
        self.replicated(45, 2, 10)
        return self.committed(50, 10)

    def replicated(self, ms: float, number: int, end: int) -> EventId:
        return self.broker(ms, number, REPLICATED, end_offset=end, leader_epoch=1)

    def committed(self, ms: float, offset: int) -> EventId:
        return self.broker(ms, 1, COMMITTED, offset=offset, leader_epoch=1)


def test_one_that_has_what_is_committed_may_join() -> None:
    story = Joining()
    story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    story.replicated(70, 3, 10)
    story.state(80, 1, 1, 1, 2, 3)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "most": 0, "compared": 3, "joins": 1})


def test_one_that_lacks_some_of_it_may_not_though_the_leader_waits_for_it_from_then_on() -> None:
    story = Joining()
    moved = story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    short = story.replicated(70, 3, 4)
    joined = story.state(80, 1, 1, 1, 2, 3)
    story.replicated(90, 3, 10)
    story.broker(95, 1, APPENDED, leader_epoch=1, first=10, last=10)
    for number in (2, 3):
        story.replicated(100, number, 11)
    story.committed(110, 11)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (joined, short, moved))
    assert finding.measures == {"count": 1, "most": 6, "compared": 6, "joins": 1}
    assert finding.why == (
        "t-0: broker 3 joined the ISR with a log that ended at 4, and b1 had committed up to offset 10 in leader epoch "
        "1"
    )


def test_what_a_leader_begins_with_is_committed() -> None:
    story = Joining(end=10, high_watermark=8)
    story.follows(60, 3, 1, 1)
    story.replicated(70, 3, 7)
    story.state(80, 1, 1, 1, 2, 3)
    assert story.found("ahead_of_isr").outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("ms", "outcome"), [(81.9, Outcome.CLEAN), (82.1, Outcome.VIOLATED)])
def test_what_it_writes_just_then_counts(ms: float, outcome: Outcome) -> None:
    """The registry's clock has milliseconds."""
    story = Joining()
    story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    story.state(80, 1, 1, 1, 2, 3)
    story.replicated(ms, 3, 10)
    assert story.found("ahead_of_isr").outcome is outcome


@pytest.mark.parametrize(("ms", "outcome"), [(78.1, Outcome.CLEAN), (77.9, Outcome.VIOLATED)])
def test_what_is_committed_just_then_may_be_committed_after_it(ms: float, outcome: Outcome) -> None:
    story = Joining()
    story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    story.replicated(70, 3, 10)
    story.broker(75, 1, APPENDED, leader_epoch=1, first=10, last=10)
    story.replicated(76, 2, 11)
    story.committed(ms, 11)
    story.state(80, 1, 1, 1, 2, 3)
    assert story.found("ahead_of_isr").outcome is outcome


def test_what_it_has_cut_off_it_lacks() -> None:
    story = Joining()
    story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    story.replicated(70, 3, 10)
    story.broker(75, 3, TRUNCATED, from_offset=10, to_offset=5, high_watermark=5, leader_epoch=1)
    story.state(80, 1, 1, 1, 2, 3)
    assert story.found("ahead_of_isr").outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("role", "outcome"), [(False, Outcome.CLEAN), (True, Outcome.VIOLATED)])
def test_of_one_that_was_started_again_nothing_is_known_until_it_has_a_role(role: bool, outcome: Outcome) -> None:
    story = Joining()
    story.committed_to_ten()
    story.follows(55, 3, 1, 1)
    story.killed(60, "b3")
    story.restarted(70, 3)
    if role:
        story.follows(75, 3, 1, 1)
    story.state(80, 1, 1, 1, 2, 3)
    assert story.found("ahead_of_isr").outcome is outcome


def test_who_is_in_the_isr_of_another_leader_epoch_has_not_joined() -> None:
    """That is an election, and `leader_outside_isr` judges who may be in its ISR."""
    story = Joining()
    story.committed_to_ten()
    story.follows(60, 3, 1, 1)
    story.state(80, 1, 2, 1, 2, 3)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.measures["joins"]) == (Outcome.CLEAN, 0)
