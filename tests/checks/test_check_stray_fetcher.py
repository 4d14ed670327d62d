"""stray_fetcher, on histories written by hand: partition t-0, and broker b2 with its replica."""

from __future__ import annotations

import pytest
from broker_story import Brokers

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import EventId
from rebalance_lab.history.replicas import FETCHES, FETCHES_NO_MORE, REPLICA_ENDED


class Fetchers(Brokers):
    def fetches(self, ms: float, leader: int, leader_epoch: int, fetcher: int) -> EventId:
        return self.broker(ms, 2, FETCHES, leader=leader, leader_epoch=leader_epoch, fetcher=fetcher)

    def fetches_no_more(self, ms: float, leader: int, fetcher: int) -> EventId:
        return self.broker(ms, 2, FETCHES_NO_MORE, leader=leader, fetcher=fetcher)


def following() -> Fetchers:
    """b2 follows b1, and fetches from it (b2/3 and b2/4; b2/0 to b2/2 are its registration)."""
    story = Fetchers()
    for number in (1, 2, 3):
        story.registered(10, number)
    story.follows(20, 2, 1, 0)
    story.fetches(20, 1, 0, fetcher=1)
    return story


def test_one_fetcher_after_the_other_and_none_as_the_leader() -> None:
    story = following()
    story.fetches_no_more(30, 1, fetcher=1)
    story.leads(31, 2, 1, 2, 3)
    story.follows(40, 2, 3, 2)
    story.fetches(41, 3, 2, fetcher=2)
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "fetchers": 2, "followers": 1})
    assert finding.why == "each follower had one fetcher, and no leader had any"


def test_a_leader_that_goes_on_fetching() -> None:
    story = following()
    leads = story.leads(31, 2, 1, 2, 3)
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (leads, ("b2", 3)))
    assert finding.why == "t-0: b2 leads, and fetches from broker 1"


def test_a_fetcher_of_a_replica_that_has_ended() -> None:
    story = following()
    ended = story.broker(31, 2, REPLICA_ENDED, role="stopped")
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (ended, ("b2", 3)))


def test_two_fetchers_of_one_replica() -> None:
    story = following()
    story.follows(30, 2, 3, 1)
    second = story.fetches(31, 3, 1, fetcher=2)
    story.fetches_no_more(32, 1, fetcher=1)
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("b2", 3), second))
    assert finding.why == "t-0: b2 fetches from broker 1 and from broker 3 at once"


def test_a_fetcher_that_begins_anew_is_one() -> None:
    story = following()
    story.follows(30, 2, 1, 1)
    story.fetches(31, 1, 1, fetcher=1)
    assert story.found("stray_fetcher").outcome is Outcome.CLEAN


@pytest.mark.parametrize("partition", [0, 1])
def test_only_the_same_partition_counts(partition: int) -> None:
    story = following()
    story.broker(30, 2, FETCHES, partition=partition, leader=3, leader_epoch=0, fetcher=2)
    assert story.found("stray_fetcher").outcome is (Outcome.CLEAN if partition else Outcome.VIOLATED)


def test_a_follower_without_a_fetcher_at_rest() -> None:
    story = following()
    story.fetches_no_more(30, 1, fetcher=1)
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("b2", 2), ("runner", 0)))
    assert finding.why == "t-0: at rest b2 follows broker 1 in leader epoch 0, and has no fetcher"


def test_a_fetcher_of_an_earlier_epoch_at_rest() -> None:
    story = following()
    role = story.follows(30, 2, 1, 1)
    finding = story.found("stray_fetcher")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (role, ("b2", 3), ("runner", 0)))
    assert finding.why.endswith("and its fetchers are 1, and not one of this leader and epoch")


def test_a_follower_has_time_to_begin() -> None:
    for at_ms, outcome in ((529, Outcome.CLEAN), (531, Outcome.VIOLATED)):
        story = following()
        story.fetches_no_more(30, 1, fetcher=1)
        story.follows(30, 2, 3, 1)
        assert story.found("stray_fetcher", at_ms).outcome is outcome


def test_of_a_leader_that_is_gone_nothing_need_be_fetched() -> None:
    story = following()
    story.fetches_no_more(30, 1, fetcher=1)
    story.unregistered(40, 1)
    assert story.found("stray_fetcher").outcome is Outcome.CLEAN


def test_the_fetchers_of_a_process_go_with_it() -> None:
    story = following()
    story.killed(30, "b2")
    story.restarted(40, 2)
    story.leads(50, 2, 1, 2)
    assert story.found("stray_fetcher").outcome is Outcome.CLEAN


def test_without_fetchers_the_check_does_not_apply() -> None:
    story = Fetchers()
    story.follows(20, 2, 1, 0)
    assert not CHECKS["stray_fetcher"].applies(story.history())
