"""early_shrink where followers may lack so many records (`replica.lag.max.messages`), on histories written by hand:
partition t-0 of leader 1, and followers may lag for 2 s or by 5 records."""

from __future__ import annotations

import pytest
from isr_story import Leader

from rebalance_lab.checks import Outcome


def test_a_follower_that_lacks_many_records_may_be_dropped_at_once() -> None:
    story = Leader()
    story.appended(500, 0, 5)
    story.dropped(600)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "joined": 0, "recent": 0, "counted": 0, "shrinks": 1, "least_us": 590_000}


def test_one_that_lacks_no_more_than_it_may_has_its_time() -> None:
    story = Leader()
    story.appended(500, 0, 5)
    story.committed(510, 1)
    dropped = story.dropped(600)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), dropped))
    assert finding.why == (
        "t-0: broker 1 dropped broker 2 from the ISR 0.590 s after its leader epoch began, and it may lag for 2.000 s "
        "or by 5 records"
    )


def test_it_may_be_dropped_after_that() -> None:
    story = Leader()
    story.appended(500, 0, 4)
    story.dropped(2600)
    assert story.found().outcome is Outcome.CLEAN


def test_one_that_has_everything_a_moment_later_was_healthy() -> None:
    story = Leader()
    appended = story.appended(3500, 0, 5)
    dropped = story.dropped(3600)
    story.joined(3700)
    again = story.committed(3800, 6)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (appended, dropped, again))
    assert finding.measures == {"count": 1, "joined": 0, "recent": 0, "counted": 1, "shrinks": 1, "least_us": 3_590_000}
    assert finding.why == (
        "t-0: broker 1 dropped broker 2 from the ISR, which lacked 6 records at most and may lack 5; it had all of "
        "them again 0.300 s after the first was appended, and it may lag for 2.000 s"
    )


def test_one_that_joins_with_all_that_is_committed_has_everything_then() -> None:
    """`min.insync.replicas` of 1: the leader alone commits what the follower lacks."""
    story = Leader()
    appended = story.appended(3500, 0, 5)
    dropped = story.dropped(3600)
    story.committed(3601, 6)
    joined = story.joined(3700)
    assert story.found().witness == (appended, dropped, joined)


def test_what_the_leader_commits_alone_says_nothing_of_the_follower() -> None:
    story = Leader()
    story.appended(3500, 0, 5)
    story.dropped(3600)
    story.committed(3601, 6)
    assert story.found().outcome is Outcome.CLEAN


@pytest.mark.parametrize(("again_ms", "outcome"), [(5490, Outcome.VIOLATED), (5500, Outcome.CLEAN)])
def test_one_that_lacked_a_record_for_long_was_not_healthy(again_ms: int, outcome: Outcome) -> None:
    """The time counts from the first record that it lacked, however early it joins."""
    story = Leader()
    story.appended(3500, 0, 5)
    story.appended(3550, 6, 9)
    story.dropped(3600)
    story.joined(3700)
    story.committed(again_ms, 10)
    assert story.found().outcome is outcome


def test_of_a_record_of_an_earlier_leader_it_is_not_known_for_how_long_it_was_lacking() -> None:
    story = Leader(end=4, high_watermark=3)
    story.appended(3500, 4, 9)
    story.dropped(3600)
    story.joined(3700)
    story.committed(3800, 10)
    assert story.found().outcome is Outcome.CLEAN


def test_each_drop_of_an_isr_that_flaps_is_counted() -> None:
    story = Leader()
    for number in range(3):
        ms = 1000 + 1000 * number
        story.appended(ms, 6 * number, 6 * number + 5)
        story.dropped(ms + 10)
        story.joined(ms + 20)
        story.committed(ms + 30, 6 * number + 6)
    assert story.found().measures == {
        "count": 3,
        "joined": 2,
        "recent": 0,
        "counted": 3,
        "shrinks": 3,
        "least_us": 990_000,
    }


def test_a_leader_s_decision_may_seem_to_come_after_the_state() -> None:
    """The registry's clock has milliseconds, and may be behind a little."""
    story = Leader()
    story.appended(500, 0, 5)
    story.state(600, 1)
    story.assumed(601, (1, 2), (1,))
    assert story.found().outcome is Outcome.CLEAN


def test_what_is_written_after_the_decision_was_no_reason_for_it() -> None:
    story = Leader()
    story.appended(500, 0, 4)
    story.assumed(598, (1, 2), (1,))
    story.appended(599, 5, 9)
    story.state(600, 1)
    assert story.found().outcome is Outcome.VIOLATED


def test_without_the_leader_s_decision_only_time_counts() -> None:
    story = Leader()
    story.appended(500, 0, 5)
    story.state(600, 1)
    finding = story.found()
    assert (finding.outcome, finding.measures["counted"]) == (Outcome.VIOLATED, 0)


def test_where_records_do_not_count_only_time_does() -> None:
    story = Leader(lag_messages=0)
    story.appended(500, 0, 99)
    story.dropped(600)
    finding = story.found()
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.endswith("0.590 s after its leader epoch began, and it may lag for 2.000 s")


@pytest.mark.parametrize(
    ("flush_messages", "noted_ms", "outcome"),
    [(1, 5640, Outcome.CLEAN), (1, 5641, Outcome.VIOLATED), (0, 5545, Outcome.VIOLATED)],
)
def test_records_that_the_leader_is_syncing_count(flush_messages: int, noted_ms: float, outcome: Outcome) -> None:
    """They are in its log when it decides at 5540 ms, and it notes them when they are synced."""
    story = Leader(flush_messages=flush_messages)
    story.appended(5500, 0, 4)
    story.committed(5510, 5)
    story.assumed(5540, (1, 2), (1,))
    story.state(5542, 1)
    story.appended(noted_ms, 5, 10)
    assert story.found().outcome is outcome


def test_one_that_has_soon_what_the_leader_was_syncing_was_healthy() -> None:
    story = Leader(flush_messages=1)
    story.appended(5500, 0, 4)
    story.committed(5510, 5)
    story.assumed(5540, (1, 2), (1,))
    dropped = story.state(5542, 1)
    appended = story.appended(5545, 5, 10)
    story.joined(5600)
    again = story.committed(5700, 11)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (appended, dropped, again))
    assert finding.measures["counted"] == 1
