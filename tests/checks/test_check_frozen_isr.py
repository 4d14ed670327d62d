"""frozen_isr, on histories written by hand: partition t-0, of which b1 leads and b2 follows. The bound is 4.5 s."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.replicas import APPENDED, COMMITTED, FOLLOWS, ISR_ASSUMED, LEADS


class Leader(Story):
    def __init__(self, *, drift_us: int = 0) -> None:
        super().__init__(wall_drift_us=drift_us)
        self._zxids = 0
        for number in (1, 2):
            session = f"0x{number}"
            self.add(0, f"b{number}", Kind.CONNECTED, session=session)
            self._written(1, f"/brokers/ids/{number}", "{}", session=session)

    def _written(self, ms: float, path: str, data: str, **more: str) -> EventId:
        self._zxids += 1
        kind = Kind.CHANGED if path.endswith("state") and self._zxids > 3 else Kind.CREATED
        return self.add(ms, "zookeeper", kind, detail={"path": path, "data": data}, zxid=self._zxids, **more)

    def state(self, ms: float, leader: int, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": 0, "isr": isr}
        return self._written(ms, "/brokers/topics/t/partitions/0/state", json.dumps(data))

    def says(self, ms: float, kind: Kind, actor: str = "b1", **detail: object) -> EventId:
        return self.add(ms, actor, kind, member=actor, topic="t", partition=0, detail=detail)

    def leads(self, ms: float, *isr: int) -> EventId:
        return self.says(ms, LEADS, isr=list(isr))

    def assumes(self, ms: float, *isr: int, proposed: tuple[int, ...] | None = None) -> EventId:
        return self.says(ms, ISR_ASSUMED, isr=list(isr), proposed=proposed)

    def found(self, at_ms: float = 9000) -> Finding:
        self.add(at_ms, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
        return CHECKS["frozen_isr"].judge(self.history())


def led(**more: int) -> Leader:
    story = Leader(**more)
    story.state(5, 1, 1, 2)
    return story


def test_a_leader_that_keeps_a_broker_for_too_long() -> None:
    story = led()
    believed = story.leads(10, 1, 2)
    changed = story.state(1000, 1, 1)
    given_up = story.assumes(5501, 1)
    assert story.found() == Finding(
        Outcome.VIOLATED,
        "b1 kept broker 2 in its ISR of t-0 for 4.501 s, and the state znode did not",
        (changed, believed, given_up),
        {"count": 1, "longest_us": 4_501_000, "stalled_us": 0},
    )


def test_a_leader_that_is_told_in_time() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.state(1000, 1, 1)
    story.leads(5500, 1)
    finding = story.found()
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 4_500_000)


def test_a_leader_that_never_gives_it_up() -> None:
    story = led()
    believed = story.leads(10, 1, 2)
    changed = story.state(1000, 1, 1)
    finding = story.found(at_ms=6000)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (changed, believed))
    assert finding.measures["longest_us"] == 5_000_000


def test_what_it_has_asked_for_does_not_free_it() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.state(1000, 1, 1)
    story.assumes(2000, 1, 2, proposed=(1,))
    assert story.found().outcome is Outcome.VIOLATED


def test_a_broker_that_comes_back_ends_it() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.state(1000, 1, 1)
    story.state(2000, 1, 1, 2)
    assert story.found().measures["longest_us"] == 1_000_000


def test_a_broker_that_the_leader_wants_in_is_not_kept() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.state(1000, 1, 1)
    story.assumes(1001, 1)
    story.assumes(1002, 1, proposed=(1, 2))
    assert story.found().measures["longest_us"] == 1_000


def test_a_leader_that_others_know_as_none_is_no_leader() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.state(1000, 1, 1)
    story.state(1500, -1, 1)
    assert story.found().measures["longest_us"] == 500_000


def test_a_leader_that_follows_or_is_dead_keeps_nothing() -> None:
    for end in ("follows", "killed"):
        story = led()
        story.leads(10, 1, 2)
        story.state(1000, 1, 1)
        if end == "follows":
            story.says(1500, FOLLOWS, leader=2)
        else:
            fault = story.add(1500, "runner", Kind.FAULT_BEGAN, detail={"fault": KILL, "target": "b1"})
            proof = {"fault": KILL, "target": "b1", "of": fault[1], "proof": "dead"}
            story.add(1500, "runner", Kind.FAULT_BIT, detail=proof)
        assert story.found().measures["longest_us"] == 500_000, end


def test_what_another_than_the_leader_believes_does_not_count() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.says(11, LEADS, "b2", isr=[1, 2])
    story.state(1000, 1, 1)
    story.assumes(1010, 1)
    assert story.found().measures["longest_us"] == 10_000


def test_how_long_records_wait_for_their_commit() -> None:
    story = led()
    story.leads(10, 1, 2)
    story.says(1000, APPENDED, last=0)
    story.says(1100, APPENDED, last=1)
    story.says(1500, COMMITTED, offset=1)
    story.says(1800, COMMITTED, offset=2)
    story.says(8000, APPENDED, last=2)
    assert story.found(at_ms=8100).measures["stalled_us"] == 700_000


def test_without_a_leader_or_with_a_clock_that_drifts_nothing_is_proven() -> None:
    finding = led().found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "nobody led")
    story = led(drift_us=50_000)
    story.leads(10, 1, 2)
    assert story.found().outcome is Outcome.UNKNOWN
