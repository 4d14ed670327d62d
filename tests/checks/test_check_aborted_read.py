"""aborted_read, on histories written by hand."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.checks import Finding, Outcome


def test_a_refused_write_is_not_there() -> None:
    story = Writes()
    story.refused(10, 1)
    story.wrote(20, 1, 0)
    story.read(100, (0, 1))
    finding = story.found("aborted_read")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "refused": 1}


def test_a_refused_write_is_there() -> None:
    story = Writes()
    began = story.refused(10, 1)
    read = story.read(100, (0, 1))
    assert story.found("aborted_read") == Finding(
        Outcome.VIOLATED,
        "number 1 was refused, and is at offset 0; it may be there 0 times",
        (began, read),
        {"count": 1, "refused": 1},
    )


def test_a_refused_write_is_there_beside_one_that_was_acknowledged() -> None:
    story = Writes()
    began = story.refused(10, 1)
    story.wrote(20, 1, 1)
    read = story.read(100, (0, 1), (1, 1))
    assert story.found("aborted_read").witness == (began, read)


def test_a_write_of_unknown_outcome_refuses_nothing() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.wrote(20, 1, 1)
    story.read(100, (0, 1), (1, 1))
    assert story.found("aborted_read").outcome is Outcome.CLEAN


def test_more_records_than_refusals_are_duplicates() -> None:
    story = Writes()
    story.refused(10, 1)
    story.read(100, (0, 1), (1, 1), (2, 1))
    assert story.found("aborted_read").measures["count"] == 1
    assert story.found("duplicate").measures["count"] == 2


def test_without_a_read_nothing_is_known() -> None:
    story = Writes()
    story.refused(10, 1)
    assert story.found("aborted_read").outcome is Outcome.UNKNOWN
