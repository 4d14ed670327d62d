"""early_shrink, on histories written by hand: partition t-0, and followers may lag for 2 s."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import ISR_ASSUMED


class Isrs(Story):
    def __init__(self) -> None:
        super().__init__(lag_ms=2000)
        self._count = 0

    def state(self, ms: int, leader_epoch: int, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": isr[0], "version": 1, "leader_epoch": leader_epoch, "isr": isr}
        self._count += 1
        detail = {"path": "/brokers/topics/t/partitions/0/state", "data": json.dumps(data)}
        return self.add(ms, "zookeeper", Kind.CHANGED, detail=detail, zxid=self._count)

    def assumed(self, ms: int, isr: list[int], proposed: list[int] | None = None, leader_epoch: int = 0) -> EventId:
        detail = {"leader_epoch": leader_epoch, "isr": isr, "proposed": proposed}
        return self.add(ms, f"b{isr[0]}", ISR_ASSUMED, detail=detail, topic="t", partition=0)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["early_shrink"].judge(self.history())


def test_a_follower_that_had_its_time() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2, 3)
    story.state(2010, 0, 1, 2)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "joined": 0, "recent": 0, "counted": 0, "shrinks": 1, "least_us": 2_000_000}


def test_one_that_had_half_of_it() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2, 3)
    began = story.state(5000, 1, 2, 3)
    shrunk = story.state(6000, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (began, shrunk))
    assert finding.why == (
        "t-0: broker 2 dropped broker 3 from the ISR 1.000 s after its leader epoch began, and it may lag for 2.000 s"
    )


def test_what_the_controller_takes_out_is_not_the_leader_s_doing() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2, 3)
    story.state(1000, 1, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.measures["shrinks"]) == (Outcome.CLEAN, 0)


def test_one_that_had_joined_before_it_had_caught_up() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2)
    joined = story.state(1000, 0, 1, 2, 3)
    shrunk = story.state(1500, 0, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (joined, shrunk))
    assert (finding.measures["count"], finding.measures["joined"]) == (1, 1)
    assert finding.why == (
        "t-0: broker 1 dropped broker 3 from the ISR 0.500 s after it had joined, and it may lag for 2.000 s"
    )


def test_each_drop_of_an_isr_that_flaps_counts() -> None:
    story = Isrs()
    story.state(10, 0, 1)
    for ms in (1000, 2000, 3000):
        story.state(ms, 0, 1, 2)
        story.state(ms + 500, 0, 1)
    assert story.found().measures == {
        "count": 3,
        "joined": 3,
        "recent": 0,
        "counted": 0,
        "shrinks": 3,
        "least_us": 500_000,
    }


def test_a_follower_joins_when_the_leader_asks_for_it() -> None:
    """The controller may take its time to write the ISR, and the follower may be gone by then."""
    story = Isrs()
    story.state(10, 0, 1, 2)
    story.assumed(900, [1, 2], [1, 2, 3])
    story.state(2500, 0, 1, 2, 3)
    story.state(2900, 0, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.measures["least_us"]) == (Outcome.CLEAN, 2_000_000)


def test_what_a_leader_assumed_before_the_follower_was_dropped_is_past() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2)
    story.assumed(100, [1, 2], None)
    story.state(3000, 0, 1)
    joined = story.state(3500, 0, 1, 2)
    shrunk = story.state(4000, 0, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (joined, shrunk))


def test_what_the_leader_of_another_epoch_assumed_says_nothing() -> None:
    story = Isrs()
    story.state(10, 1, 1, 2)
    story.assumed(100, [1, 2], [1, 2, 3], leader_epoch=0)
    joined = story.state(3000, 1, 1, 2, 3)
    shrunk = story.state(3500, 1, 1, 2)
    assert story.found().witness == (joined, shrunk)


def test_without_rest_nothing_is_said() -> None:
    story = Isrs()
    story.state(10, 0, 1, 2, 3)
    story.state(2500, 0, 1, 2)
    assert CHECKS["early_shrink"].judge(story.history()).outcome is Outcome.UNKNOWN


def test_without_a_state_nothing_is_said() -> None:
    finding = Isrs().found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no partition has a state")
