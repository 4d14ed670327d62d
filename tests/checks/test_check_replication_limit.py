"""replication_limit, on histories written by hand: brokers 1, 2 and 3, and topics that a client asks for."""

from __future__ import annotations

from topics_story import Topics

from rebalance_lab.checks import CHECKS, Finding, Outcome

REFUSED = "INVALID_REPLICATION_FACTOR"


def test_too_many_replicas_are_refused_and_leave_nothing() -> None:
    story = Topics()
    story.possible()
    story.answered(210, "t", story.asked(200, "t", 4), REFUSED)
    finding = story.found()
    measures = {"count": 0, "refused": 1, "created": 1, "undecided": 0}
    assert finding == Finding(Outcome.CLEAN, "1 topics with too many replicas were refused", (), measures)


def test_a_topic_that_is_there_after_all() -> None:
    story = Topics()
    story.possible()
    asked = story.asked(200, "t", 4)
    left = story.assignment(205, "t", [1, 2, 3], [2, 3, 1])
    story.answered(210, "t", asked, REFUSED)
    finding = story.found()
    why = "topic t, 4 replicas on 3 brokers: left /brokers/topics/t in ZooKeeper"
    assert (finding.outcome, finding.why, finding.witness) == (Outcome.VIOLATED, why, (asked, left))


def test_settings_that_stay() -> None:
    story = Topics()
    story.possible()
    asked = story.asked(200, "t", 4)
    left = story.znode(205, "/config/topics/t", {"version": 1, "config": {}})
    story.answered(210, "t", asked, REFUSED)
    assert story.found().witness == (asked, left)


def test_another_error_is_not_clear() -> None:
    story = Topics()
    story.possible()
    story.answered(210, "t", story.asked(200, "t", 4), "UNKNOWN_SERVER_ERROR")
    finding = story.found()
    assert finding.why == "topic t, 4 replicas on 3 brokers: was answered UNKNOWN_SERVER_ERROR"


def test_who_refuses_a_possible_factor_breaks_the_rule() -> None:
    story = Topics()
    story.answered(110, "p", story.asked(100, "p", 3), REFUSED)
    story.answered(210, "t", story.asked(200, "t", 4), REFUSED)
    finding = story.found()
    assert finding.why == f"topic p, 3 replicas on 3 brokers: was not created ({REFUSED})"


def test_fewer_replicas_than_asked_for() -> None:
    story = Topics()
    asked = story.asked(100, "p", 3)
    made = story.assignment(110, "p", [1, 2, 3], [2, 3])
    story.answered(120, "p", asked)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (asked, made))


def test_brokers_that_come_meanwhile_decide_nothing() -> None:
    story = Topics()
    story.possible()
    asked = story.asked(200, "t", 4)
    story.znode(205, "/brokers/ids/4")
    story.answered(210, "t", asked, REFUSED)
    assert story.found().measures["undecided"] == 1
    assert not CHECKS["replication_limit"].applies(story.history())


def test_only_refusals_do_not_show_that_topics_can_be_created() -> None:
    story = Topics()
    story.answered(210, "t", story.asked(200, "t", 4), REFUSED)
    finding = story.found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no topic had a possible replication factor")


def test_fewer_partitions_than_asked_for() -> None:
    story = Topics()
    asked = story.asked(100, "p", 2, partitions=3)
    made = story.assignment(110, "p", [1, 2], [2, 3])
    story.answered(120, "p", asked)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (asked, made))
    assert finding.why == "topic p, 2 replicas on 3 brokers: was created with 2 partitions instead of 3"


def test_a_replica_on_a_broker_that_is_not_there() -> None:
    story = Topics()
    asked = story.asked(100, "p", 2)
    made = story.assignment(110, "p", [1, 2], [2, 99])
    story.answered(120, "p", asked)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (asked, made))
    assert finding.why.endswith("was created with a replica on broker 99, which is not registered")
