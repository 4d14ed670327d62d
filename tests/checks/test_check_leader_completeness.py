"""leader_completeness, on histories written by hand: partition t-0, brokers b1 and b2."""

from __future__ import annotations

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import COMMITTED, FOLLOWS, LEADS


class Leaders(Story):
    def leads(self, ms: int, number: int, epoch: int, end_offset: int, high_watermark: int = 0) -> EventId:
        detail = {"leader_epoch": epoch, "end_offset": end_offset, "high_watermark": high_watermark}
        return self._of(ms, number, LEADS, detail)

    def follows(self, ms: int, number: int, epoch: int, high_watermark: int) -> EventId:
        return self._of(ms, number, FOLLOWS, {"leader_epoch": epoch, "high_watermark": high_watermark})

    def committed(self, ms: int, number: int, epoch: int, offset: int) -> EventId:
        return self._of(ms, number, COMMITTED, {"leader_epoch": epoch, "offset": offset})

    def _of(self, ms: int, number: int, kind: Kind, detail: dict[str, int]) -> EventId:
        name = f"b{number}"
        return self.add(ms, name, kind, member=name, topic="t", partition=0, group=None, detail=detail)

    def found(self) -> Finding:
        self.rest(900)
        return CHECKS["leader_completeness"].judge(self.history())


def test_the_next_leader_has_what_was_committed() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    story.committed(10, 1, 0, 1)
    story.committed(20, 1, 0, 2)
    story.leads(30, 2, 1, 2, high_watermark=1)
    story.committed(31, 2, 1, 2)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "missing": 0, "commits": 3, "successions": 1}


def test_the_next_leader_lacks_two_records() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    commit = story.committed(10, 1, 0, 5)
    leader = story.leads(30, 2, 1, 3)
    finding = story.found()
    assert (finding.outcome, finding.witness, finding.measures["missing"]) == (Outcome.VIOLATED, (commit, leader), 2)
    assert finding.why == (
        "t-0: b1 committed up to offset 5 in leader epoch 0, and b2 leads in epoch 1 with a log that ends at 3"
    )


def test_a_deposed_leader_commits_when_the_next_one_leads_already() -> None:
    """It has counted a fetch of the next leader, which therefore has the record."""
    story = Leaders()
    story.leads(1, 1, 0, 0)
    story.leads(30, 2, 1, 4)
    story.committed(31, 1, 0, 4)
    assert story.found().outcome is Outcome.CLEAN


def test_a_deposed_leader_commits_what_the_next_one_lacks() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    leader = story.leads(30, 2, 1, 4)
    commit = story.committed(31, 1, 0, 5)
    assert story.found().witness == (commit, leader)


def test_a_high_watermark_that_falls_in_one_epoch() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    before, after = story.committed(10, 1, 0, 5), story.committed(20, 1, 0, 4)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))


def test_one_that_falls_as_soon_as_a_leader_has_begun() -> None:
    story = Leaders()
    began = story.leads(1, 1, 0, 9, high_watermark=5)
    after = story.committed(10, 1, 0, 4)
    story.committed(20, 1, 0, 6)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (began, after))
    assert finding.why == "t-0: the high watermark of b1 went from 5 to 4 in leader epoch 0"


def test_a_follower_s_own_may_fall() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    story.committed(10, 1, 0, 5)
    story.follows(20, 1, 1, high_watermark=3)
    story.leads(21, 2, 1, 5, high_watermark=4)
    assert story.found().outcome is Outcome.CLEAN


def test_without_a_commit_nothing_is_said() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    story.leads(30, 2, 1, 0)
    finding = story.found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "nothing was committed")


def test_a_topic_that_is_created_anew_begins_anew() -> None:
    story = Leaders()
    story.leads(1, 1, 0, 0)
    story.committed(10, 1, 0, 5)
    story.registry(20, Kind.DELETED, "/brokers/topics/t", "0x9", group=None)
    data = '{"version":1,"partitions":{"0":[1,2]}}'
    story.registry(30, Kind.CREATED, "/brokers/topics/t", "0x9", detail={"data": data}, group=None)
    story.leads(40, 1, 0, 0)
    story.committed(50, 1, 0, 1)
    story.leads(60, 2, 1, 1, high_watermark=1)
    assert story.found().outcome is Outcome.CLEAN


def test_what_it_loses_after_that_is_found() -> None:
    story = Leaders()
    story.registry(20, Kind.DELETED, "/brokers/topics/t", "0x9", group=None)
    data = '{"version":1,"partitions":{"0":[1,2]}}'
    story.registry(30, Kind.CREATED, "/brokers/topics/t", "0x9", detail={"data": data}, group=None)
    story.leads(40, 1, 0, 0)
    committed = story.committed(50, 1, 0, 3)
    lacks = story.leads(60, 2, 1, 1, high_watermark=1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (committed, lacks))
