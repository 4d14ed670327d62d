"""lost_write, on histories written by hand."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.checks import CHECKS, Outcome


def test_all_that_was_acknowledged_is_there() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.wrote(20, 2, 1)
    story.read(100, (0, 1), (1, 2))
    finding = story.found("lost_write")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "acknowledged": 2, "unanswered": 0}


def test_the_first_write_that_is_not_there_is_the_witness() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    second = story.wrote(20, 2, 1)
    story.wrote(30, 3, 2)
    read = story.read(100, (0, 1))
    finding = story.found("lost_write")
    assert finding.outcome is Outcome.VIOLATED
    assert finding.witness == (second, read)
    assert finding.measures["count"] == 2


def test_a_loss_at_the_end_of_the_log_counts() -> None:
    """No record above it was read: Jepsen would call it unseen, but the read began after all writes."""
    story = Writes()
    lost = story.wrote(10, 1, 0)
    read = story.read(100)
    assert story.found("lost_write").witness == (lost, read)


def test_a_record_at_another_offset_than_was_acknowledged_is_lost() -> None:
    """Found by counterfeits: a broker that names wrong offsets, and one that reads values at the wrong offsets."""
    story = Writes()
    wrong = story.wrote(10, 1, 3)
    read = story.read(100, (0, 1))
    finding = story.found("lost_write")
    assert finding.witness == (wrong, read)
    assert finding.why.endswith("number 1 was acknowledged at offset 3 and is elsewhere")


def test_a_number_that_was_acknowledged_twice_is_there_twice() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    second = story.wrote(20, 1, 1)
    read = story.read(100, (0, 1))
    finding = story.found("lost_write")
    assert (finding.witness, finding.measures["count"]) == ((second, read), 1)


def test_an_unknown_write_may_be_there_or_not_or_twice() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.wrote(20, 1, 1)
    story.wrote(30, 2, None)
    story.read(100, (0, 1), (1, 1))
    finding = story.found("lost_write")
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "acknowledged": 1, "unanswered": 2}


def test_without_a_read_nothing_is_known() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    assert story.found("lost_write").outcome is Outcome.UNKNOWN


def test_without_an_acknowledgement_nothing_is_known() -> None:
    story = Writes()
    story.wrote(10, 1, None)
    story.read(100, (0, 1))
    assert story.found("lost_write").outcome is Outcome.UNKNOWN


def test_a_loss_counts_though_the_trial_never_came_to_rest() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(100)
    assert CHECKS["lost_write"].judge(story.history()).outcome is Outcome.VIOLATED


def test_a_read_that_a_fault_outlasted_decides_nothing() -> None:
    """Found in a simulated trial: the last fault took 97 records after the client had read all 200."""
    story = Writes()
    story.wrote(10, 1, 0)
    story.paused(15, 30, "b1")
    story.read(20, (0, 1))
    finding = story.found("lost_write")
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.endswith("the log was read before the end of a fault (pause of b1)")


def test_what_is_missing_from_it_is_lost_all_the_same() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.paused(15, 30, "b1")
    story.read(20)
    assert story.found("lost_write").outcome is Outcome.VIOLATED


def test_the_last_read_decides() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(20, (0, 1))
    story.paused(25, 30, "b1")
    last = story.read(40)
    finding = story.found("lost_write")
    assert (finding.outcome, finding.witness[1]) == (Outcome.VIOLATED, last)


def test_what_a_control_may_contain_is_not_a_fault() -> None:
    story = Writes()
    story.wrote(10, 1, 0)
    story.read(20, (0, 1))
    began = story.fault(30, "join", "b4")
    story.bit(31, "join", "b4", began)
    story.ended(32, "join", "b4", began)
    assert story.found("lost_write").outcome is Outcome.CLEAN
