"""isr_of_topic, on histories written by hand: partitions t-0 and t-1 with the replicas 1, 2, 3."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind


class Topic(Story):
    def __init__(self, *other: int) -> None:
        super().__init__()
        assignment = {"version": 1, "partitions": {"0": [1, 2, 3], "1": other or [2, 3, 1]}}
        detail = {"path": "/brokers/topics/t", "data": json.dumps(assignment)}
        self.add(1, "zookeeper", Kind.CREATED, detail=detail, zxid=1)
        self._count = 1

    def isr(self, ms: int, partition: int, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": isr[0], "version": 1, "leader_epoch": 0, "isr": isr}
        self._count += 1
        detail = {"path": f"/brokers/topics/t/partitions/{partition}/state", "data": json.dumps(data)}
        return self.add(ms, "zookeeper", Kind.CHANGED, detail=detail, zxid=self._count)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["isr_of_topic"].judge(self.history())


def test_both_lose_the_replica_and_get_it_back() -> None:
    story = Topic()
    story.isr(10, 0, 1, 2, 3)
    story.isr(11, 1, 2, 3, 1)
    story.isr(1000, 0, 1, 2)
    story.isr(1400, 1, 2, 1)
    story.isr(5000, 0, 1, 2, 3)
    story.isr(5900, 1, 2, 1, 3)
    finding = story.found()
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "longest_us": 900_000, "pairs": 1})


def test_one_loses_it_for_a_second() -> None:
    story = Topic()
    story.isr(10, 0, 1, 2, 3)
    other = story.isr(11, 1, 2, 3, 1)
    one = story.isr(1000, 0, 1, 2)
    story.isr(2000, 0, 1, 2, 3)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (one, other))
    assert finding.why == "for 1.000 s two partitions of a topic had the ISRs [1, 2] and [1, 2, 3]"


def test_another_order_is_no_difference() -> None:
    story = Topic()
    story.isr(10, 0, 1, 2)
    story.isr(11, 1, 2, 1)
    assert story.found().outcome is Outcome.CLEAN


def test_partitions_with_other_replicas_are_not_compared() -> None:
    story = Topic(2, 3)
    story.isr(10, 0, 1, 2)
    story.isr(11, 1, 2, 3)
    assert not CHECKS["isr_of_topic"].applies(story.history())


def test_isrs_that_never_changed_decide_nothing() -> None:
    story = Topic()
    story.isr(10, 0, 1, 2, 3)
    story.isr(11, 1, 2, 3, 1)
    assert not CHECKS["isr_of_topic"].applies(story.history())


def test_without_rest_nothing_is_said() -> None:
    story = Topic()
    story.isr(10, 0, 1, 2)
    story.isr(11, 1, 2, 1)
    assert CHECKS["isr_of_topic"].judge(story.history()).outcome is Outcome.UNKNOWN
