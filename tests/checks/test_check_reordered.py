"""reordered, on histories written by hand."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.checks import Finding, Outcome


def test_records_in_the_order_of_their_numbers() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, 1)
    story.read(100, (0, 1), (1, 2))
    finding = story.found("reordered")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "records": 2})


def test_two_records_the_other_way_round() -> None:
    story = Writes()
    actor, first = story.wrote(10, 1, 0)
    _, second = story.wrote(20, 2, 1)
    read = story.read(100, (0, 2), (1, 1))
    assert story.found("reordered") == Finding(
        Outcome.VIOLATED,
        "number 1 is at offset 1, behind number 2 at offset 0",
        ((actor, first - 1), (actor, second - 1), read),
        {"count": 1, "records": 2},
    )


def test_an_answer_whose_records_are_out_of_order_though_their_offsets_are_right() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, 1)
    story.read(100, (1, 2), (0, 1))
    assert story.found("reordered").outcome is Outcome.VIOLATED


def test_a_late_copy_may_stand_anywhere() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.wrote(20, 1, 0)
    story.wrote(30, 2, 1)
    story.read(100, (0, 1), (1, 2), (2, 1))
    assert story.found("reordered").outcome is Outcome.CLEAN


def test_a_number_that_is_missing_breaks_no_order() -> None:
    story = Writes()
    for number in (1, 2, 3):
        story.wrote(10 * number, number, number - 1)
    story.read(100, (0, 1), (1, 3))
    assert story.found("reordered").outcome is Outcome.CLEAN


def test_a_value_of_no_number_is_passed_over() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, 2)
    story.read(100, (0, 1), (1, "damaged"), (2, 2))
    assert story.found("reordered").outcome is Outcome.CLEAN


def test_one_record_has_no_order() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(100, (0, 1))
    finding = story.found("reordered")
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "there is no order")


def test_without_a_read_nothing_is_known() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    finding = story.found("reordered")
    assert finding.outcome is Outcome.UNKNOWN
    assert "nothing was read after the writes" in finding.why
