"""ahead_of_isr, on histories written by hand: partition t-0, led by b1 in leader epoch 1, with b2 and b3 in sync."""

from __future__ import annotations

import pytest
from log_story import Logs, replicating

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import EventId
from rebalance_lab.history.replicas import COMMITTED

STATE = ("zookeeper", 3)


def test_all_have_what_is_committed() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    story.committed(60, 1, 5)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "most": 0, "compared": 3, "joins": 0})
    assert finding.why == "every replica in sync had what was committed, in 3 comparisons"


def test_a_replica_in_sync_lacks_what_is_committed() -> None:
    story = replicating()
    short = story.replicated(51, 3, 4)
    moved = story.committed(60, 1, 5)
    story.replicated(61, 3, 5)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, short, moved))
    assert finding.measures == {"count": 1, "most": 1, "compared": 3, "joins": 0}
    assert finding.why == (
        "t-0: b1 committed up to offset 5 in leader epoch 1, and the log of broker 3, which is in the ISR, ended at 4"
    )


def test_who_is_not_in_the_isr_may_lack_everything() -> None:
    story = replicating(1, 2)
    story.committed(60, 1, 5)
    assert story.found("ahead_of_isr").outcome is Outcome.CLEAN


def test_the_leader_s_own_log_counts() -> None:
    story = replicating(1, 2)
    story.replicated(55, 2, 6)
    story.committed(60, 1, 6)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.witness[1]) == (Outcome.VIOLATED, ("b1", 3))


def test_what_was_cut_off_is_gone() -> None:
    story = replicating(1, 2)
    cut = story.cut(55, 2, 5, 3)
    moved = story.committed(60, 1, 5)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, cut, moved))


def test_of_another_leader_epoch_the_state_says_nothing() -> None:
    story = replicating()
    story.committed(60, 1, 5, leader_epoch=0)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "nothing was committed beside a state that stood")


def test_a_state_that_has_just_been_written_or_replaced() -> None:
    for written_ms, outcome in ((57.9, Outcome.VIOLATED), (58.1, Outcome.UNKNOWN)):
        story = replicating(1, 2)
        story.state(written_ms, 1, 1, 1, 2, 3)
        story.committed(60, 1, 5)
        assert story.found("ahead_of_isr").outcome is outcome
    for replaced_ms, outcome in ((61.9, Outcome.UNKNOWN), (62.1, Outcome.VIOLATED)):
        story = replicating()
        story.committed(60, 1, 5)
        story.state(replaced_ms, 1, 1, 1, 2)
        assert story.found("ahead_of_isr").outcome is outcome


def test_a_killed_replica_keeps_what_it_has_and_no_more() -> None:
    story = replicating()
    story.killed(55, "b3")
    story.committed(60, 1, 5)
    assert story.found("ahead_of_isr").outcome is Outcome.VIOLATED


def test_of_a_replica_that_was_started_again_nothing_is_known_until_it_has_a_role() -> None:
    for role, outcome in ((False, Outcome.CLEAN), (True, Outcome.VIOLATED)):
        story = replicating()
        story.killed(52, "b3")
        story.restarted(55, 3)
        if role:
            story.follows(56, 3, 1, 1)
        story.committed(60, 1, 5)
        assert story.found("ahead_of_isr").outcome is outcome


def test_a_follower_may_have_told_its_leader_in_the_same_microsecond() -> None:
    story = replicating()
    story.replicated(60, 3, 5)
    story.committed(60, 1, 5)
    assert story.found("ahead_of_isr").outcome is Outcome.CLEAN


def joining(end: int, *, leaders_end: int = 5) -> tuple[Logs, EventId, EventId, EventId]:
    """b1 has committed 5 records with b2, which leads in epoch 2 and knows of 3. b3 joins with a log that ends at
    `end`. Returns also the commit, the end of b3's log, and the state with it."""
    story = replicating(1, 2)
    moved = story.committed(60, 1, 5)
    story.state(100, 2, 2, 2)
    story.leads(110, 2, 2, 2, end=leaders_end, high_watermark=min(3, leaders_end))
    log_end = story.follows(120, 3, 2, 2, end=end)
    return story, moved, log_end, story.state(200, 2, 2, 2, 3)


def test_one_that_joins_needs_what_the_leader_before_has_committed() -> None:
    story, moved, log_end, joined = joining(4)
    finding = story.found("ahead_of_isr")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (joined, log_end, moved))
    assert finding.measures == {"count": 1, "most": 1, "compared": 3, "joins": 1}
    assert finding.why == (
        "t-0: broker 3 joined the ISR with a log that ended at 4, and b1 had committed up to offset 5 in leader epoch 1"
    )


@pytest.mark.parametrize(("end", "leaders_end"), [(5, 5), (2, 2)])
def test_one_that_joins_needs_no_more_than_an_unclean_leader_has(end: int, leaders_end: int) -> None:
    story, *_ = joining(end, leaders_end=leaders_end)
    assert story.found("ahead_of_isr").outcome is Outcome.CLEAN


def test_one_that_joins_needs_what_its_leader_has_committed() -> None:
    story, *_ = joining(5)
    moved = story.broker(150, 2, COMMITTED, offset=6, leader_epoch=2)
    assert story.found("ahead_of_isr").witness[2] == moved


def test_what_a_deposed_leader_commits_later_says_nothing_of_who_joined() -> None:
    story = replicating(1, 2)
    story.committed(60, 1, 4)
    story.state(100, 2, 2, 2)
    story.leads(110, 2, 2, 2, end=5, high_watermark=3)
    story.follows(120, 3, 2, 2, end=4)
    story.state(200, 2, 2, 2, 3)
    story.committed(199, 1, 5)
    assert story.found("ahead_of_isr").outcome is Outcome.CLEAN


def test_without_replication_the_check_does_not_apply() -> None:
    story = Logs()
    story.committed(60, 1, 5)
    assert not CHECKS["ahead_of_isr"].applies(story.history())
