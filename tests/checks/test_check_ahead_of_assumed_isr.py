"""ahead_of_assumed_isr, on histories written by hand: partition t-0, led by b1, with b2 and b3 in sync."""

from __future__ import annotations

import pytest
from log_story import Logs, replicating

from rebalance_lab.checks import CHECKS, Finding, Outcome

#: b1's LEADS, with the ISR (1, 2, 3).
LEADS = ("b1", 2)


def found(story: Logs) -> Finding:
    return story.found("ahead_of_assumed_isr")


def test_all_have_what_is_committed() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    story.committed(60, 1, 5)
    finding = found(story)
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "most": 0, "compared": 6}  # one at LEADS, one at each FOLLOWS
    assert finding.why == "every replica that a leader counted as in sync had what was committed, in 6 comparisons"


def test_a_replica_that_the_leader_counts_on_lacks_what_is_committed() -> None:
    story = replicating()
    short = story.replicated(51, 3, 4)
    moved = story.committed(60, 1, 5)
    story.replicated(61, 3, 5)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (LEADS, moved, short))
    assert finding.measures == {"count": 1, "most": 1, "compared": 6}
    assert finding.why == (
        "t-0: b1 has committed up to offset 5 in leader epoch 1, and the log of broker 3, on which it counts, ended "
        "at 4"
    )


def test_who_does_not_count_may_lack_everything() -> None:
    """Though it is in the ISR of the state znode: that is `assumed_isr` and `ahead_of_isr`."""
    story = replicating()
    story.assumes(55, 1, 1, 2)
    story.committed(60, 1, 5)
    assert found(story).outcome is Outcome.CLEAN
    assert CHECKS["ahead_of_isr"].judge(story.history()).outcome is Outcome.VIOLATED


def test_a_deposed_leader_that_has_not_heard_of_it() -> None:
    story = replicating()
    story.state(55, 2, 2, 2, 3)
    story.follows(56, 3, 2, 2)
    story.committed(60, 1, 5)
    assert found(story).outcome is Outcome.VIOLATED
    assert CHECKS["ahead_of_isr"].judge(story.history()).outcome is Outcome.UNKNOWN


def test_one_that_has_heard_of_it_counts_no_more() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    story.committed(60, 1, 5)
    story.follows(70, 1, 2, 2, end=5)
    story.cut(80, 3, 5, 4)
    assert found(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("end", "outcome"), [(5, Outcome.CLEAN), (4, Outcome.VIOLATED)])
def test_a_replica_that_is_to_join_counts_before_the_leader_knows_that_it_has(end: int, outcome: Outcome) -> None:
    story = replicating()
    story.assumes(51, 1, 1, 2)
    story.committed(52, 1, 5)
    story.replicated(53, 3, end)
    story.assumes(60, 1, 1, 2, proposed=(1, 2, 3))
    assert found(story).outcome is outcome


def test_one_that_is_to_be_dropped_counts_until_the_leader_knows_that_it_is() -> None:
    for shrunk, outcome in ((False, Outcome.VIOLATED), (True, Outcome.CLEAN)):
        story = replicating()
        story.assumes(51, 1, 1, 2, 3, proposed=(1, 2))
        if shrunk:
            story.assumes(52, 1, 1, 2)
        story.committed(60, 1, 5)
        assert found(story).outcome is outcome


def test_what_a_replica_cuts_off_later_is_missed_at_once() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    moved = story.committed(60, 1, 5)
    cut = story.cut(70, 3, 5, 4)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (LEADS, moved, cut))


def test_a_cut_above_the_high_watermark_does_no_harm() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    story.committed(60, 1, 3)
    story.cut(70, 3, 5, 4)
    assert found(story).outcome is Outcome.CLEAN


def test_a_replica_that_comes_back_with_less() -> None:
    for end, outcome in ((5, Outcome.CLEAN), (4, Outcome.VIOLATED)):
        story = replicating()
        story.replicated(51, 3, 5)
        story.committed(52, 1, 5)
        story.killed(60, "b3")
        story.restarted(70, 3)
        story.follows(80, 3, 1, 1, end=end)
        assert found(story).outcome is outcome


def test_of_one_that_was_started_again_nothing_is_known_until_it_has_a_role() -> None:
    story = replicating()
    story.killed(51, "b3")
    story.restarted(52, 3)
    story.committed(60, 1, 5)
    assert found(story).outcome is Outcome.CLEAN


def test_a_leader_that_is_dead_counts_on_nobody() -> None:
    story = replicating()
    story.replicated(51, 3, 5)
    story.committed(60, 1, 5)
    story.killed(65, "b1")
    story.cut(70, 3, 5, 4)
    assert found(story).outcome is Outcome.CLEAN


def test_the_high_watermark_with_which_a_leader_begins() -> None:
    story = replicating()
    short = story.replicated(51, 3, 4)
    leads = story.leads(60, 2, 2, 2, 3, end=5, high_watermark=5)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (leads, short))


def test_where_no_log_is_known_nothing_is_compared() -> None:
    story = Logs()
    story.registered(10, 1)
    story.replicated(20, 1, 5)
    story.committed(30, 1, 5)
    finding = found(story)
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "no leader counted on a replica whose log is known",
    )


def test_without_replication_the_check_does_not_apply() -> None:
    story = Logs()
    story.committed(60, 1, 5)
    assert not CHECKS["ahead_of_assumed_isr"].applies(story.history())


def test_a_follower_may_have_told_its_leader_in_the_same_microsecond() -> None:
    story = replicating()
    story.replicated(60, 3, 5)
    story.committed(60, 1, 5)
    assert story.found("ahead_of_assumed_isr").outcome is Outcome.CLEAN
