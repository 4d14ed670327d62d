"""garbage_read, on histories written by hand."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.checks import Finding, Outcome


def test_all_records_were_sent() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, None)
    story.read(100, (0, 1), (1, 2))
    finding = story.found("garbage_read")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "damaged": 0, "records": 2}


def test_a_number_that_nobody_sent() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    read = story.read(100, (0, 1), (1, 77))
    assert story.found("garbage_read") == Finding(
        Outcome.VIOLATED,
        "offset 1 has number 77, which nobody sent",
        (read,),
        {"count": 1, "damaged": 0, "records": 2},
    )


def test_a_value_that_is_none_of_the_client_s() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(100, (0, "'1 ffff', 6 bytes"))
    finding = story.found("garbage_read")
    assert finding.why == "offset 0 has a value of no number ('1 ffff', 6 bytes), which nobody sent"
    assert finding.measures == {"count": 1, "damaged": 1, "records": 1}


def test_a_refused_number_was_sent() -> None:
    story = Writes()
    story.refused(10, 1)
    story.read(100, (0, 1))
    assert story.found("garbage_read").outcome is Outcome.CLEAN


def test_without_records_nothing_is_known() -> None:
    assert Writes().found("garbage_read").outcome is Outcome.UNKNOWN
    story = Writes()
    story.read(100)
    assert story.found("garbage_read").why == "the log is empty"
