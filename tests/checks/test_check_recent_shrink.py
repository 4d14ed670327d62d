"""early_shrink in the middle of a leader epoch, on histories written by hand: the leader epoch begins at 10 ms, and
broker 2 may lag for 2 s."""

from __future__ import annotations

import pytest
from isr_story import Leader

from rebalance_lab.checks import Outcome


def led(**options: int) -> Leader:
    return Leader(**{"lag_messages": 0, **options})


def test_one_that_had_everything_a_moment_before() -> None:
    story = led()
    story.appended(3000, 0, 4)
    story.committed(3010, 5)
    appended = story.appended(5500, 5, 5)
    committed = story.committed(5510, 6)
    story.appended(5530, 6, 6)
    decided = story.assumed(5540, (1, 2), (1,))
    dropped = story.state(5542, 1)
    story.joined(5551)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (appended, committed, decided, dropped))
    assert finding.measures == {
        "count": 1,
        "joined": 0,
        "recent": 1,
        "counted": 0,
        "shrinks": 1,
        "least_us": 5_532_000,
    }
    assert finding.why == (
        "t-0: broker 1 dropped broker 2 from the ISR, which had everything when the leader committed all up to offset "
        "6; the last of that was appended 0.040 s before the leader decided on the drop, and it may lag for 2.000 s"
    )


@pytest.mark.parametrize(("decided_ms", "outcome"), [(4890, Outcome.VIOLATED), (4900, Outcome.CLEAN)])
def test_the_time_counts_from_the_append_and_not_from_the_commit(decided_ms: float, outcome: Outcome) -> None:
    """The follower may have fetched right after the append, and another one late, by which the leader committed."""
    story = led()
    story.appended(3000, 0, 4)
    story.committed(4000, 5)
    story.appended(4500, 5, 9)
    story.dropped(decided_ms + 2)
    assert story.found().outcome is outcome


def test_one_that_was_behind_all_the_time_may_be_dropped() -> None:
    """More is committed all the time, and never all: a follower whose fetches never reach the end is not caught up."""
    story = led()
    for number in range(50):
        story.appended(100 + 100 * number, number, number)
        story.committed(105 + 100 * number, number)
    story.dropped(5150)
    assert story.found().outcome is Outcome.CLEAN


def test_one_that_fetches_no_more_since_nothing_was_written() -> None:
    """It died when it had everything; a record that comes much later shows that it lags, and it has for long."""
    story = led()
    story.appended(1000, 0, 4)
    story.committed(1010, 5)
    story.appended(5000, 5, 5)
    story.dropped(5100)
    assert story.found().outcome is Outcome.CLEAN


def test_what_is_committed_after_the_decision_says_nothing() -> None:
    story = led()
    story.appended(1000, 0, 4)
    story.assumed(5000, (1, 2), (1,))
    story.committed(5001, 5)
    story.state(5002, 1)
    assert story.found().outcome is Outcome.CLEAN


def test_what_was_committed_before_it_joined_says_nothing_of_it() -> None:
    story = led()
    story.dropped(2500)
    story.appended(4550, 0, 4)
    story.committed(4551, 5)
    story.joined(4560)
    story.appended(4570, 5, 5)
    story.dropped(6570)
    finding = story.found()
    assert (finding.outcome, finding.measures["shrinks"]) == (Outcome.CLEAN, 2)


def test_that_all_is_committed_when_a_leader_begins_says_nothing_of_fetches() -> None:
    """It hears of its leader epoch long after the state was written, and may report late that it leads. A broker of
    Kafka 3.9.1 dropped followers 1.7 s after that, which it had not seen fetch for 2 s."""
    story = Leader(lag_messages=0, leads_ms=3000)
    story.dropped(4000)
    assert story.found().outcome is Outcome.CLEAN


def test_without_the_leader_s_decision_nothing_is_known() -> None:
    story = led()
    story.appended(5500, 0, 4)
    story.committed(5510, 5)
    story.state(5600, 1)
    assert story.found().outcome is Outcome.CLEAN


@pytest.mark.parametrize(("lacks", "outcome"), [(5, Outcome.VIOLATED), (6, Outcome.CLEAN)])
def test_where_records_count_too_one_that_lacks_too_many_may_be_dropped(lacks: int, outcome: Outcome) -> None:
    story = led(lag_messages=5)
    story.appended(5500, 0, 4)
    story.committed(5510, 5)
    story.appended(5520, 5, 4 + lacks)
    story.dropped(5540)
    finding = story.found()
    assert (finding.outcome, finding.measures["recent"]) == (outcome, int(outcome is Outcome.VIOLATED))
