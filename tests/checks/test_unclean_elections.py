"""When a topic allowed unclean elections, on histories written by hand."""

from __future__ import annotations

import math

import pytest
from broker_story import Brokers

from rebalance_lab.checks.periods import ALWAYS, Period
from rebalance_lab.checks.unclean_elections import unclean_allowed
from rebalance_lab.history.events import Kind
from rebalance_lab.wire.errors import KafkaException


def allowed(story: Brokers, topic: str = "t") -> list[Period]:
    return unclean_allowed(story.history(), topic)


@pytest.mark.parametrize(("brokers", "expected"), [(True, [ALWAYS]), (False, []), (None, [])])
def test_without_a_setting_of_its_own_the_brokers_decide(brokers: bool | None, expected: list[Period]) -> None:
    story = Brokers(unclean=brokers)
    story.configured(1000, flush_messages="1")
    assert (allowed(story), allowed(story, "other")) == (expected, expected)


def test_its_own_setting_decides_while_it_has_one() -> None:
    story = Brokers(unclean=False)
    story.configured(1000, Kind.CREATED, unclean_leader_election_enable=" True")
    story.configured(2000, unclean_leader_election_enable="no")
    story.configured(3000, unclean_leader_election_enable="true")
    story.configured(4000, Kind.DELETED)
    assert allowed(story) == [Period(1_000_000, 2_000_000), Period(3_000_000, 4_000_000)]
    assert allowed(story, "other") == []


def test_it_may_forbid_what_the_brokers_allow() -> None:
    story = Brokers(unclean=True)
    story.configured(1000, unclean_leader_election_enable="false")
    story.configured(2000)
    assert allowed(story) == [Period(-math.inf, 1_000_000), Period(2_000_000, math.inf)]
    assert allowed(story, "other") == [ALWAYS]


def test_a_configuration_that_is_malformed() -> None:
    story = Brokers()
    story.registry(1000, Kind.CHANGED, "/config/topics/t", "0x9", detail={"data": "{"}, group=None)
    with pytest.raises(KafkaException, match="/config/topics/t"):
        allowed(story)
