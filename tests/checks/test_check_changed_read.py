"""changed_read, on histories written by hand."""

from __future__ import annotations

import pytest
from reading_story import Reading, Record

from rebalance_lab.checks import CHECKS, Outcome


def test_what_was_read_is_in_all_replicas() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    story.polled(20, (1, 1, 2))
    for broker in (1, 2):
        story.replica(100, broker, (0, 0, 1), (1, 1, 2), (2, 1, 3))
    finding = story.found("changed_read")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "read": 2}


@pytest.mark.parametrize(
    ("now", "has"),
    [
        ([(1, 0, 7)], "number 7 of leader epoch 0"),
        ([(1, 1, 2)], "number 2 of leader epoch 1"),  # the client has sent it again after an election
        ([(1, 0, "'9'")], "a value of no number ('9') of leader epoch 0"),
        ([], "nothing"),
        ([(2, 0, 2)], "nothing"),
    ],
)
def test_another_record_is_at_its_offset_or_none(now: list[Record], has: str) -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    read = story.polled(20, (1, 0, 2))
    replica = story.replica(100, 1, (0, 0, 1), *now)
    finding = story.found("changed_read")
    assert finding.why == f"c2 read number 2 of leader epoch 0 at offset 1, and broker 1 has {has} there"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (read, replica))
    assert finding.measures == {"count": 1, "read": 2}


def test_one_replica_that_lacks_it_is_enough() -> None:
    story = Reading()
    read = story.polled(10, (0, 0, 1))
    story.replica(100, 1, (0, 0, 1))
    other = story.replica(110, 2)
    assert story.found("changed_read").witness == (read, other)


def test_the_first_read_of_a_record_is_the_witness() -> None:
    story = Reading()
    first = story.polled(10, (0, 0, 1))
    story.moved(20, 1, 0)
    story.polled(30, (0, 0, 1))
    replica = story.replica(100, 1, (0, 0, 2))
    assert story.found("changed_read").witness == (first, replica)


def test_two_records_that_were_read_at_one_offset_cannot_both_stay() -> None:
    story = Reading()
    first = story.polled(10, (0, 0, 1))
    story.moved(20, 1, 0)
    story.polled(30, (0, 1, 2))
    replica = story.replica(100, 1, (0, 1, 2))
    assert story.found("changed_read").witness == (first, replica)


def test_without_a_read_of_a_replica_nothing_is_known() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    story.read(100, (0, 2))
    assert story.found("changed_read").outcome is Outcome.UNKNOWN


def test_it_applies_only_where_somebody_reads_along() -> None:
    story = Reading()
    story.replica(100, 1, (0, 0, 1))
    assert not CHECKS["changed_read"].applies(story.history())
