"""poll_skip, on histories written by hand."""

from __future__ import annotations

from reading_story import Reading

from rebalance_lab.checks import CHECKS, Outcome

#: Five records as a reader finds them: offset, leader epoch, number.
OLD = [(offset, 0, offset + 1) for offset in range(5)]


def rewritten(story: Reading) -> None:
    """From offset 2 on the log is cut, and written anew in leader epoch 1, beyond what the reader has read."""
    story.polled(10, *OLD)
    for offset in range(2, 7):
        story.wrote(20 + offset, offset + 10, offset)


REWRITTEN = [(0, 1), (1, 2), *((offset, offset + 10) for offset in range(2, 7))]


def test_a_reader_that_reads_on_at_its_position_misses_what_was_written_below() -> None:
    story = Reading()
    rewritten(story)
    went_on = story.polled(50, (5, 1, 15), (6, 1, 16))
    end = story.read(100, *REWRITTEN)
    finding = story.found("poll_skip")
    assert finding.why == "offset 2 has number 12, and c2 read on from offset 5 without having read it"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (went_on, end))
    assert finding.measures == {"count": 3, "read": 7, "lag_us": 24_000}


def test_one_that_goes_back_to_where_the_log_was_cut_misses_nothing() -> None:
    story = Reading()
    rewritten(story)
    story.moved(40, 5, 2)
    story.polled(50, *((offset, 1, offset + 10) for offset in range(2, 7)))
    story.read(100, *REWRITTEN)
    finding = story.found("poll_skip")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "read": 10, "lag_us": 27_000}


def test_one_that_goes_back_too_little_misses_the_rest() -> None:
    story = Reading()
    rewritten(story)
    went_on = story.moved(40, 5, 3)
    story.polled(50, *((offset, 1, offset + 10) for offset in range(3, 7)))
    end = story.read(100, *REWRITTEN)
    finding = story.found("poll_skip")
    assert finding.why == "offset 2 has number 12, and c2 was moved from offset 5 to 3 without having read it"
    assert (finding.witness, finding.measures["count"]) == ((went_on, end), 1)


def test_one_that_jumps_to_the_end_of_the_log_misses_what_it_jumps_over() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    for offset in (1, 2, 3):
        story.wrote(20 + offset, offset + 1, offset)
    jumped = story.moved(40, 1, 3, cause="out-of-range")
    story.polled(50, (3, 1, 4))
    end = story.read(100, *((offset, offset + 1) for offset in range(4)))
    finding = story.found("poll_skip")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (jumped, end))
    assert finding.measures["count"] == 2


def test_one_that_begins_anew_reads_again_and_misses_nothing() -> None:
    story = Reading()
    story.polled(10, *OLD)
    story.moved(20, 5, 0, cause="out-of-range")
    story.polled(30, *OLD)
    story.read(100, *((offset, number) for offset, _, number in OLD))
    finding = story.found("poll_skip")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "read": 5, "lag_us": 0}


def test_a_record_in_the_middle_of_a_poll_that_is_left_out() -> None:
    story = Reading()
    poll = story.polled(10, (0, 0, 1), (2, 0, 3))
    end = story.read(100, (0, 1), (1, 2), (2, 3))
    assert story.found("poll_skip").witness == (poll, end)


def test_what_stands_above_the_last_position_may_still_be_read() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    story.read(100, (0, 1), (1, 2))
    assert story.found("poll_skip").outcome is Outcome.CLEAN


def test_what_stands_below_the_first_position_is_not_missed() -> None:
    story = Reading()
    story.polled(10, (3, 0, 4))
    story.read(100, *((offset, offset + 1) for offset in range(4)))
    assert story.found("poll_skip").outcome is Outcome.CLEAN


def test_each_reader_must_have_read_it_itself() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1), (1, 0, 2))
    passed = story.polled(20, (0, 0, 1), (2, 0, 3), by="c3")
    end = story.read(100, (0, 1), (1, 2), (2, 3))
    assert story.found("poll_skip").witness == (passed, end)


def test_the_lag_is_that_of_the_slowest_reader_s_first_read() -> None:
    story = Reading()
    story.wrote(10, 1, 0)  # acknowledged at 11 ms
    story.polled(10.5, (0, 0, 1))
    story.wrote(20, 2, 1)
    story.polled(24, (1, 0, 2))
    story.polled(23, (0, 0, 1), by="c3")
    story.polled(30, (1, 0, 2), by="c3")
    story.polled(90, (0, 0, 1), (1, 0, 2))
    story.read(100, (0, 1), (1, 2))
    assert story.found("poll_skip").measures["lag_us"] == 12_000  # c3's of number 1


def test_what_is_not_acknowledged_or_not_read_has_no_lag() -> None:
    story = Reading()
    story.wrote(10, 1, None)
    story.wrote(20, 2, 1)
    story.polled(50, (0, 0, 1))
    story.read(100, (0, 1), (1, 2))
    assert story.found("poll_skip").measures["lag_us"] == 0


def test_without_a_read_of_the_whole_log_nothing_is_known() -> None:
    story = Reading()
    story.polled(10, (0, 0, 1))
    assert story.found("poll_skip").outcome is Outcome.UNKNOWN


def test_it_applies_only_where_somebody_reads_along() -> None:
    story = Reading()
    story.read(100, (0, 1))
    assert not CHECKS["poll_skip"].applies(story.history())
