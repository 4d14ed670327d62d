"""ahead_of_isr, on histories written by hand: partition t-0, led by b1 in leader epoch 1, with b2 and b3 in sync."""

from __future__ import annotations

from log_story import Logs, replicating

from rebalance_lab.checks import CHECKS, Outcome

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


def test_without_replication_the_check_does_not_apply() -> None:
    story = Logs()
    story.committed(60, 1, 5)
    assert not CHECKS["ahead_of_isr"].applies(story.history())
