"""Bounds of a trial, as the check of unowned windows applies them.

With the story's parameters, which know no latency, requests take no time: the registry's bound
is 4 × 500 ms = 2 s, belief's 2 s + 2 × 500 ms more: 5 s.
"""

from __future__ import annotations

import pytest
from history_story import Story

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.bounds import LIVE_ROUND_TRIP_US, bounds
from rebalance_lab.checks.unowned_window import CHECK
from rebalance_lab.history.events import Kind


def judge(story: Story) -> Finding:
    return CHECK.judge(story.history())


def _alive(**parameters: object) -> Story:
    """m1 has rebalanced at 100 ms: m1 is alive, and both views begin."""
    story = Story(**parameters)
    story.started(0, "m1")
    story.rebalanced(100, "m1")
    return story


def _bounds(world: str = "simulated", **parameters: object) -> tuple[int, int]:
    story = _alive(world=world, **parameters)
    measured = judge(story).measures
    return measured["bound_us"], measured["belief_bound_us"]


#: 3 brokers, 5 members, one topic of 7 partitions: 3·3 + 5 + 1 + 4·7 + 7 = 50 requests.
GROUP = {"brokers": 3, "members": 5, "partitions": 7}


def test_an_attempt_s_requests_take_a_round_trip_each() -> None:
    """4 × (500 ms + 50 × 2 × 2 ms) = 2.8 s; belief's is 3 s longer."""
    assert _bounds(**GROUP, latency_max_us=2_000) == (2_800_000, 5_800_000)


def test_an_attempt_waits_for_fetchers_to_stop() -> None:
    assert _bounds(**GROUP, latency_max_us=2_000, fetcher_stop_ms=100) == (3_200_000, 6_200_000)


def test_on_a_real_server_a_round_trip_is_5_ms_whatever_the_simulated_latency() -> None:
    """4 × (500 ms + 50 × 5 ms) = 3 s."""
    assert LIVE_ROUND_TRIP_US == 5_000
    assert _bounds("processes", **GROUP, latency_max_us=2_000) == (3_000_000, 6_000_000)


def test_on_a_real_server_too_it_waits_for_fetchers_to_stop() -> None:
    """4 × (500 ms + 100 ms + 50 × 5 ms) = 3.4 s."""
    assert _bounds("processes", **GROUP, fetcher_stop_ms=100) == (3_400_000, 6_400_000)


@pytest.mark.parametrize(
    ("missing", "requests"), [("brokers", 41), ("members", 46), ("fetcher_stop_ms", 50), ("latency_max_us", 0)]
)
def test_parameters_that_are_missing_count_nothing(missing: str, requests: int) -> None:
    """But the member that started is one."""
    parameters = {**GROUP, "latency_max_us": 2_000, missing: None}
    assert _bounds(**parameters)[0] == 4 * (500_000 + requests * 4_000)


def test_members_may_have_longer_settings_than_the_trial() -> None:
    """m2's session is 30 s, and it tries 10 times, 1 s apart: 10 s; belief's is 30 + 1 s longer."""
    story = _alive()
    longer = {"session_timeout_ms": 30_000, "rebalance_backoff_ms": 1_000, "rebalance_max_retries": 10}
    story.member(0, "m2", Kind.MEMBER_STARTED, detail=longer)
    measured = judge(story).measures
    assert (measured["bound_us"], measured["belief_bound_us"]) == (10_000_000, 41_000_000)


def test_topics_and_partitions_that_came_count_too() -> None:
    """5 places of 2 topics instead of 1 of 1, and 2 members: 2 + 2 + 4·5 + 7 = 31 requests."""
    story = _alive(latency_max_us=5_000)
    for partition in range(5):
        topic = "t" if partition < 3 else "u"
        story.registry(10, Kind.CREATED, None, "0x1", member="g_m1", topic=topic, partition=partition)
    assert judge(story).measures["bound_us"] == 4 * (500_000 + 31 * 10_000)


@pytest.mark.parametrize(("back_ms", "outcome"), [(3_802, Outcome.CLEAN), (3_803, Outcome.VIOLATED)])
def test_a_window_is_too_long_when_requests_and_back_offs_cannot_explain_it(back_ms: int, outcome: Outcome) -> None:
    """13 requests (no brokers told, 1 member, 1 topic and partition) of 10 ms, and 70 ms to stop."""
    story = _alive(members=1, latency_max_us=5_000, fetcher_stop_ms=70)
    story.owned(90, "m1")
    story.created(90, "m1")
    story.deleted(1_000, "m1")
    story.created(back_ms, "m1")
    story.phase(9_000, "closing")
    story.rest(9_000)
    assert judge(story).outcome is outcome


@pytest.mark.parametrize(("backoff_ms", "quiet_us"), [(500, 1_000_000), (100, 200_000), (10, 200_000)])
def test_rest_asks_for_a_quiet_of_two_back_offs_but_200_ms(backoff_ms: int, quiet_us: int) -> None:
    assert bounds(Story(rebalance_backoff_ms=backoff_ms).history()).quiet_us == quiet_us
