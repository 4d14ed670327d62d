"""Bounds of a trial, as the check of unowned windows applies them.

With the story's parameters, which know no latency, requests take no time: the registry's bound
is 4 × 500 ms = 2 s, belief's 2 s + 2 × 500 ms more: 5 s.
"""

from __future__ import annotations

from typing import Any

import pytest
from group_story import GroupStory
from history_story import Story

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.bounds import LIVE_REQUEST_US, LIVE_ROUND_TRIP_US, REPLICATION_US, bounds, bounds_of
from rebalance_lab.checks.unowned_window import CHECK
from rebalance_lab.history.events import Kind
from rebalance_lab.world.simulated.settings import ServerSettings


def judge(story: GroupStory) -> Finding:
    return CHECK.judge(story.history())


def _alive(**parameters: Any) -> GroupStory:
    """m1, which reads t, has rebalanced at 100 ms: m1 is alive, and both views begin."""
    story = GroupStory(**parameters)
    story.topic(0, "t", 1)
    story.started(0, "m1")
    story.registers(10, "m1")
    story.rebalanced(100, "m1")
    return story


def _bounds(world: str = "simulated", **parameters: Any) -> tuple[int, int]:
    story = _alive(world=world, **parameters)
    measured = judge(story).measures
    return measured["bound_us"], measured["belief_bound_us"]


#: 3 brokers, 5 members, one topic of 7 partitions: 3·3 + 5 + 1 + 4·7 + 7 = 50 requests.
GROUP: dict[str, Any] = {"brokers": 3, "members": 5, "partitions": 7}


def test_an_attempt_s_requests_take_a_round_trip_each() -> None:
    """4 × (500 ms + 50 × 2 × 2 ms) = 2.8 s; belief's is 3 s longer."""
    assert _bounds(**GROUP, latency_max_us=2_000) == (2_800_000, 5_800_000)


def test_in_a_simulated_ensemble_a_write_goes_to_the_leader_and_back() -> None:
    """4 × (500 ms + 50 × (2 × 2 ms + 2 × 0.9 ms)) = 3.16 s; real servers have their allowance for it."""
    assert ServerSettings().replication_us[1] == REPLICATION_US
    assert _bounds(**GROUP, latency_max_us=2_000, servers=3) == (3_160_000, 6_160_000)
    assert _bounds("processes", **GROUP, servers=3) == (3_000_000, 6_000_000)


def test_an_attempt_waits_for_fetchers_to_stop() -> None:
    assert _bounds(**GROUP, latency_max_us=2_000, fetcher_stop_ms=100) == (3_200_000, 6_200_000)


@pytest.mark.parametrize(("decided_ms", "ended_ms", "bound_ms"), [
    (1040, 1500, 2160),  # 4 × (500 ms + 40 ms): the stop came before the decision
    (None, 1060, 2240),  # without a decision the stop may have taken all of the attempt
    (1100, 1500, 2400),
    (1300, 1500, 2400),  # no more than is reported
])  # fmt: skip
def test_a_stop_that_no_attempt_shows_does_not_count(decided_ms: float | None, ended_ms: float, bound_ms: int) -> None:
    story = _alive(fetcher_stop_ms=100)
    story.begins(1000, "m1")
    if decided_ms is not None:
        story.decides(decided_ms, "m1", [("t", 0)])
    story.ends(ended_ms, "m1", "failed")
    story.begins(1700, "m1")
    story.decides(1700, "m1", [("t", 0)])
    story.ends(1800, "m1")
    assert judge(story).measures["bound_us"] == bound_ms * 1000


def test_another_s_stop_is_not_a_member_s_own() -> None:
    story = _alive(fetcher_stop_ms=100)
    story.started(0, "m2")
    for actor, decided_ms in (("m1", 1020), ("m2", 1090)):
        story.begins(1000, actor)
        story.decides(decided_ms, actor, [("t", 0)])
        story.ends(1200, actor)
    history = story.history()
    assert bounds_of(history, frozenset({"m1"})).attempt_us == 20_000
    assert bounds(history).attempt_us == 90_000


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


def test_the_bounds_of_some_members_are_their_settings() -> None:
    """m2 tries 10 times and does not report the other settings; m1 reports none."""
    story = _alive()
    story.member(0, "m2", Kind.MEMBER_STARTED, detail={"rebalance_max_retries": 10})
    history = story.history()
    for actors, rebalance_us in (
        ({"m1"}, 2_000_000),
        ({"m2"}, 5_000_000),
        ({"m1", "m2"}, 5_000_000),
        (set(), 2_000_000),
    ):
        assert bounds_of(history, frozenset(actors)).rebalance_us == rebalance_us
    assert bounds(history).rebalance_us == 5_000_000


def test_what_every_member_reports_comes_before_the_trial_s_parameter() -> None:
    story = GroupStory(rebalance_max_retries=100)
    story.member(0, "m1", Kind.MEMBER_STARTED, detail={"rebalance_max_retries": 4})
    assert bounds(story.history()).rebalance_us == 2_000_000


# -- live -----------------------------------------------------------------------------------------


def attempted(world: str = "processes") -> GroupStory:
    """One attempt, from 100 ms to 3 s. Of its requests the parameters would allow 16, of 5 ms each."""
    story = GroupStory(world=world, partitions=1, members=1, brokers=1)
    story.started(0, "m1")
    story.begins(100, "m1")
    story.ends(3_000, "m1")
    return story


def request(story: GroupStory, begin_ms: float, end_ms: float, kind: Kind = Kind.OK) -> None:
    asked = story.add(begin_ms, "m1", Kind.INVOKED, detail={"op": "get", "path": "/x"})
    story.add(end_ms, "m1", kind, detail={"op": "get", "path": "/x", "of": asked[1]})


def attempt_us(story: GroupStory) -> int:
    return bounds(story.history()).attempt_us


def test_live_an_attempt_may_take_as_long_as_the_requests_of_the_slowest_took() -> None:
    """Not what its member did between them, nor what it asked for before or after. Two at once count once."""
    story = attempted()
    request(story, 50, 99)
    request(story, 100, 400)
    request(story, 1_000, 1_200, Kind.FAILED_OP)
    request(story, 1_100, 1_300)
    request(story, 2_900, 3_500)
    request(story, 3_001, 3_500)
    assert attempt_us(story) == 300_000 + 300_000 + 100_000


def test_live_quick_requests_have_their_allowance() -> None:
    story = attempted()
    request(story, 1_000, 1_001)
    assert attempt_us(story) == 16 * LIVE_ROUND_TRIP_US


def test_live_one_request_counts_for_a_second_at_most() -> None:
    story = attempted()
    request(story, 200, 2_900)
    assert LIVE_REQUEST_US == 1_000_000
    assert attempt_us(story) == LIVE_REQUEST_US


def test_live_a_request_that_was_recorded_with_its_reply_counts_from_the_record_before() -> None:
    """As of real members. The gap of 1.6 s counts for a second; of the first request no one knows when it began."""
    story = attempted()
    for ms in (200, 500, 700, 2_300):
        request(story, ms, ms)
    assert attempt_us(story) == 300_000 + 200_000 + 1_000_000


def test_live_an_attempt_without_recorded_requests_counts_for_a_second_at_most() -> None:
    assert attempt_us(attempted()) == LIVE_REQUEST_US
    assert attempt_us(attempted("simulated")) == 0


def test_live_an_attempt_that_a_fault_disturbed_does_not_count() -> None:
    story = attempted()
    request(story, 200, 900)
    began = story.fault(200, "pause", "m1")
    story.ended(700, "pause", "m1", began)
    assert attempt_us(story) == 16 * LIVE_ROUND_TRIP_US
