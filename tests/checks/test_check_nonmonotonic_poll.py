"""nonmonotonic_poll, on histories written by hand."""

from __future__ import annotations

import pytest
from reading_story import Reading, Record

from rebalance_lab.checks import CHECKS, Outcome


def records(first: int, end: int, epoch: int = 0) -> list[Record]:
    """As a reader finds them: offset, leader epoch, number."""
    return [(offset, epoch, offset + 1) for offset in range(first, end)]


def reading(*, end: int, epoch: int) -> Reading:
    """c2 has read five records of leader epoch 0. Then b1 leads in `epoch`, with a log that ends at `end`."""
    story = Reading()
    story.leads(1, 0, 0)
    story.polled(10, *records(0, 5))  # c2/0
    story.leads(20, epoch, end)
    return story


def test_a_reader_that_goes_on() -> None:
    story = reading(end=5, epoch=1)
    story.polled(30, *records(5, 7, 1))
    story.polled(40, (9, 1, 10))  # what it leaves out is another matter
    story.read(100, (0, 1), (1, 2))
    finding = story.found("nonmonotonic_poll")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "again": 0, "moves": 0, "read": 10}
    assert finding.why == "no reader went back in a log that was not cut, in 10 reads"


def test_one_that_goes_back_without_a_move() -> None:
    story = reading(end=2, epoch=1)  # though the log was cut: it must say that it goes back
    polled = story.polled(30, *records(4, 6))
    finding = story.found("nonmonotonic_poll")
    assert finding.why == "c2 went on at offset 4, and its position was 5"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("c2", 0), polled))
    assert finding.measures == {"count": 1, "again": 1, "moves": 0, "read": 7}


def test_one_that_is_moved_from_below_its_position() -> None:
    story = reading(end=2, epoch=1)
    moved = story.moved(30, 4, 2)
    finding = story.found("nonmonotonic_poll")
    assert finding.why == "c2 went on at offset 4, and its position was 5"
    assert finding.witness == (("c2", 0), moved)


@pytest.mark.parametrize("offsets", [(5, 6, 6), (5, 7, 6)])
def test_offsets_that_do_not_rise_within_a_poll(offsets: tuple[int, ...]) -> None:
    story = reading(end=5, epoch=1)
    poll = story.polled(30, *((offset, 1, offset + 1) for offset in offsets))
    finding = story.found("nonmonotonic_poll")
    assert finding.why == f"c2 read offset 6 after offset {offsets[1]}, in one read"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (poll,))


def test_offsets_that_do_not_rise_in_the_read_at_the_end() -> None:
    story = Reading()
    end = story.read(100, (0, 1), (2, 3), (1, 2))
    finding = story.found("nonmonotonic_poll")
    assert finding.why == "c1 read offset 1 after offset 2, in one read"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (end,))


def test_where_the_log_was_cut_a_reader_goes_back_to_there() -> None:
    story = reading(end=2, epoch=1)
    story.moved(30, 5, 2)
    story.polled(40, *records(2, 6, 1))
    finding = story.found("nonmonotonic_poll")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "again": 0, "moves": 1, "read": 9}


@pytest.mark.parametrize(
    ("end", "epoch", "cause", "to", "outcome"),
    [
        (5, 1, "truncated", 2, Outcome.VIOLATED),  # nothing was cut
        (3, 1, "truncated", 2, Outcome.VIOLATED),  # cut, and not so far
        (3, 1, "truncated", 3, Outcome.CLEAN),
        (2, 1, "truncated", 3, Outcome.CLEAN),  # not far enough: it misses something, and reads nothing again
        (2, 0, "truncated", 2, Outcome.VIOLATED),  # by a leader of the epoch in which it has read
        (5, 1, "out-of-range", 0, Outcome.VIOLATED),  # its position was in the log
        (4, 1, "out-of-range", 0, Outcome.CLEAN),  # auto.offset.reset=earliest
        (5, 1, "out-of-range", 8, Outcome.CLEAN),  # not back
        (5, 1, "truncated", 5, Outcome.CLEAN),
    ],
)
def test_a_move_needs_a_cause(end: int, epoch: int, cause: str, to: int, outcome: Outcome) -> None:
    story = reading(end=end, epoch=epoch)
    moved = story.moved(30, 5, to, cause=cause)
    finding = story.found("nonmonotonic_poll")
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (("c2", 0), moved)


def test_why_a_move_has_no_cause() -> None:
    story = reading(end=5, epoch=1)
    story.moved(30, 5, 2)
    why = story.found("nonmonotonic_poll").why
    assert why == "c2 was moved from offset 5 to 2, and no later leader began with a log that ended at 2 or below"
    story = reading(end=5, epoch=1)
    story.moved(30, 5, 0, cause="out-of-range")
    why = story.found("nonmonotonic_poll").why
    assert why == "c2 was moved from offset 5 to 0, and no later leader began with a log that ended below that"


def test_a_leader_that_begins_after_the_move_is_no_cause_nor_is_one_of_another_topic() -> None:
    for ms, topic, outcome in (
        (31.9, "t", Outcome.CLEAN),  # the clocks' tolerance
        (32.1, "t", Outcome.VIOLATED),
        (20, "u", Outcome.VIOLATED),
    ):
        story = reading(end=5, epoch=1)
        story.moved(30, 5, 2)
        story.leads(ms, 2, 2, topic=topic)
        assert story.found("nonmonotonic_poll").outcome is outcome


def test_what_was_cut_before_it_was_read_anew_is_no_cause() -> None:
    story = reading(end=2, epoch=1)
    story.moved(30, 5, 2)
    story.polled(40, *records(2, 6, 1))
    moved = story.moved(50, 6, 2)
    finding = story.found("nonmonotonic_poll")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("c2", 2), moved))


def test_each_reader_has_a_position_of_its_own() -> None:
    story = reading(end=5, epoch=1)
    story.polled(30, *records(0, 3), by="c3")
    assert story.found("nonmonotonic_poll").outcome is Outcome.CLEAN


def test_where_nothing_was_found_nothing_is_known() -> None:
    story = Reading()
    story.read(100)
    finding = story.found("nonmonotonic_poll")
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "nothing was read")


def test_it_applies_only_where_somebody_reads() -> None:
    story = Reading()
    story.wrote(10, 1, 0)
    assert not CHECKS["nonmonotonic_poll"].applies(story.history())
