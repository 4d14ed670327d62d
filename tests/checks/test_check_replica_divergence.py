"""replica_divergence, on histories written by hand."""

from __future__ import annotations

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind


class Reads(Story):
    def read(self, ms: float, broker: int, *records: tuple[int, int, int]) -> EventId:
        """The whole replica of a broker: (offset, leader epoch, number) of each record."""
        detail = {"op": "read-replica", "broker": broker, "records": list(records)}
        return self.add(ms, "r1", Kind.OK, detail=detail)

    def found(self) -> Finding:
        self.add(900, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
        return CHECKS["replica_divergence"].judge(self.history())


def test_replicas_that_hold_the_same() -> None:
    story = Reads()
    for broker in (1, 2, 3):
        story.read(broker, broker, (0, 0, 1), (1, 1, 2))
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "gaps": 0, "replicas": 3, "records": 2}


def test_another_number_at_one_offset() -> None:
    story = Reads()
    one, _, other = story.read(1, 1, (0, 0, 1)), story.read(2, 2, (0, 0, 1)), story.read(3, 3, (0, 0, 7))
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (one, other))


def test_the_same_number_of_another_leader_epoch() -> None:
    """A client has sent it again after a new election: the logs have parted all the same."""
    story = Reads()
    story.read(1, 1, (0, 0, 1))
    story.read(2, 2, (0, 1, 1))
    assert story.found().outcome is Outcome.VIOLATED


def test_a_replica_that_has_fewer_records_does_not_diverge() -> None:
    story = Reads()
    story.read(1, 1, (0, 0, 1), (1, 0, 2))
    story.read(2, 2, (0, 0, 1))
    assert story.found().outcome is Outcome.CLEAN


def test_a_replica_that_lacks_a_record_between_two_others() -> None:
    story = Reads()
    one = story.read(1, 1, (0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4))
    other = story.read(2, 2, (0, 0, 1), (2, 0, 3))
    assert story.found() == Finding(
        Outcome.VIOLATED,
        "offset 1 has number 2 of leader epoch 0 on broker 1, no record on 2",
        (one, other),
        {"count": 1, "gaps": 1, "replicas": 2, "records": 4},
    )


def test_a_replica_that_begins_later_has_no_gap() -> None:
    """The beginning of a log may have been deleted."""
    story = Reads()
    story.read(1, 1, (0, 0, 1), (1, 0, 2), (2, 0, 3))
    story.read(2, 2, (1, 0, 2), (2, 0, 3), (3, 0, 4))
    story.read(3, 3)
    assert story.found().outcome is Outcome.CLEAN


def test_the_last_read_of_a_replica_counts() -> None:
    story = Reads()
    story.read(1, 1, (0, 0, 9))
    story.read(2, 2, (0, 0, 1))
    story.read(3, 1, (0, 0, 1))
    assert story.found().outcome is Outcome.CLEAN


def test_one_replica_or_empty_ones_prove_nothing() -> None:
    single, empty = Reads(), Reads()
    single.read(1, 1, (0, 0, 1))
    empty.read(1, 1)
    empty.read(2, 2)
    assert single.found().outcome is Outcome.UNKNOWN
    assert empty.found().outcome is Outcome.UNKNOWN
