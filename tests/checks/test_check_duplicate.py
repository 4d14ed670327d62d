"""duplicate, on histories written by hand."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.checks import Finding, Outcome


def test_each_record_is_there_once() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, 1)
    story.read(100, (0, 1), (1, 2))
    finding = story.found("duplicate")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "repeats": 0, "records": 2}


def test_a_record_that_was_sent_once_is_there_twice() -> None:
    story = Writes()
    actor, ended = story.wrote(10, 1, 0)
    read = story.read(100, (0, 1), (1, 1))
    assert story.found("duplicate") == Finding(
        Outcome.VIOLATED,
        "number 1 is at offsets 0, 1; it may be there 1 times",
        ((actor, ended - 1), read),
        {"count": 1, "repeats": 1, "records": 2},
    )


def test_an_unanswered_attempt_may_be_there_besides() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.wrote(20, 1, 1)
    story.read(100, (0, 1), (1, 1))
    finding = story.found("duplicate")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "repeats": 1, "records": 2}


def test_no_more_often_than_there_are_attempts() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.wrote(20, 1, 1)
    story.read(100, (0, 1), (1, 1), (2, 1))
    assert story.found("duplicate").outcome is Outcome.VIOLATED


def test_an_attempt_that_never_ended_may_be_there() -> None:
    story = Writes()
    story.asked(10, 1)
    story.read(100, (0, 1))
    assert story.found("duplicate").outcome is Outcome.CLEAN


def test_an_idempotent_producer_repeats_a_batch_and_it_is_there_once() -> None:
    story = Writes()
    story.wrote(10, 1, None, sequence=(7, 0, 0))
    story.wrote(20, 1, 0, sequence=(7, 0, 0))
    story.read(100, (0, 1), (1, 1))
    assert story.found("duplicate").outcome is Outcome.VIOLATED


def test_with_a_new_producer_id_it_may_be_there_twice() -> None:
    """The log did not know the sequence any more, so the producer began anew."""
    story = Writes()
    story.wrote(10, 1, None, sequence=(7, 0, 0))
    story.refused(20, 1, sequence=(7, 0, 0))
    story.wrote(30, 1, 1, sequence=(8, 0, 0))
    story.read(100, (0, 1), (1, 1))
    assert story.found("duplicate").outcome is Outcome.CLEAN


def test_what_a_refused_attempt_explains_is_another_check_s() -> None:
    story = Writes()
    story.refused(10, 1)
    story.wrote(20, 1, 1)
    story.read(100, (0, 1), (1, 1))
    assert story.found("duplicate").outcome is Outcome.CLEAN
    assert story.found("aborted_read").outcome is Outcome.VIOLATED


def test_without_records_nothing_is_known() -> None:
    assert Writes().found("duplicate").outcome is Outcome.UNKNOWN
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(100)
    assert story.found("duplicate").why == "the log is empty"
