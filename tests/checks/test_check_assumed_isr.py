"""assumed_isr, on histories written by hand: partition t-0, led by broker 1, which is b1."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import FOLLOWS, ISR_ASSUMED, LEADS


class Assumed(Story):
    def __init__(self) -> None:
        super().__init__()
        self.add(1, "b1", Kind.CONNECTED, session="0x1", group=None)
        self.registry(2, Kind.CREATED, "/brokers/ids/1", "0x1", group=None)

    def state(self, ms: int, leader_epoch: int, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
        path = "/brokers/topics/t/partitions/0/state"
        return self.registry(ms, Kind.CHANGED, path, "0x9", detail={"data": json.dumps(data)}, group=None)

    def leads(self, ms: int, leader_epoch: int, *isr: int) -> EventId:
        return self._believes(ms, LEADS, {"leader_epoch": leader_epoch, "isr": list(isr)})

    def assumes(self, ms: int, leader_epoch: int, *isr: int, proposed: list[int] | None = None) -> EventId:
        return self._believes(ms, ISR_ASSUMED, {"leader_epoch": leader_epoch, "isr": list(isr), "proposed": proposed})

    def follows(self, ms: int, leader_epoch: int) -> EventId:
        return self._believes(ms, FOLLOWS, {"leader_epoch": leader_epoch, "leader": 2})

    def _believes(self, ms: int, kind: Kind, detail: dict[str, object]) -> EventId:
        return self.add(ms, "b1", kind, member="b1", topic="t", partition=0, group=None, detail=detail)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["assumed_isr"].judge(self.history())


def test_a_shrink_that_is_asked_for_written_and_known() -> None:
    story = Assumed()
    story.state(10, 0, 1, 2, 3)
    story.leads(20, 0, 1, 2, 3)
    story.assumes(1000, 0, 1, 2, 3, proposed=[1, 2])
    story.state(3000, 0, 1, 2)
    story.assumes(4000, 0, 1, 2)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "longest_us": 0, "compared": 4}


def test_a_shrink_that_counts_when_it_is_asked_for() -> None:
    story = Assumed()
    state = story.state(10, 0, 1, 2, 3)
    story.leads(20, 0, 1, 2, 3)
    belief = story.assumes(1000, 0, 1, 2)
    story.state(3000, 0, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (state, belief))
    assert finding.why == "t-0: for 2.000 s b1 led in epoch 0 without counting broker 3, which was in the ISR"


def test_a_replica_that_joins_counts_before_it_is_written() -> None:
    story = Assumed()
    story.state(10, 0, 1, 2)
    story.leads(20, 0, 1, 2)
    story.assumes(1000, 0, 1, 2, proposed=[1, 2, 3])
    story.state(1500, 0, 1, 2, 3)
    assert story.found().outcome is Outcome.CLEAN


def test_an_answer_that_is_lost_must_not_be_taken_for_a_refusal() -> None:
    story = Assumed()
    story.state(10, 0, 1, 2)
    story.leads(20, 0, 1, 2)
    story.assumes(1000, 0, 1, 2, proposed=[1, 2, 3])
    story.state(1500, 0, 1, 2, 3)
    story.assumes(2000, 0, 1, 2)
    assert story.found().outcome is Outcome.VIOLATED


def test_a_deposed_leader_is_compared_with_its_own_epoch() -> None:
    story = Assumed()
    story.state(10, 0, 1, 2)
    story.leads(20, 0, 1, 2)
    story.state(1000, 1, 1, 2, 3)
    assert story.found().outcome is Outcome.CLEAN


def test_a_belief_ends_when_the_broker_follows_or_dies() -> None:
    for ends in (lambda story: story.follows(40, 1), lambda story: story.killed(40, "b1")):
        story = Assumed()
        story.leads(20, 0, 1, 2)
        ends(story)
        story.state(1000, 0, 1, 2, 3)
        assert story.found().outcome is Outcome.UNKNOWN


def test_a_moment_says_nothing() -> None:
    story = Assumed()
    story.state(10, 0, 1, 2, 3)
    story.leads(20, 0, 1, 2)
    story.assumes(21, 0, 1, 2, 3)
    assert story.found().outcome is Outcome.CLEAN
