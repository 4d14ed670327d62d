"""What a leader concludes from what its followers have fetched. Broker 1 leads 1, 2, 3; times are in µs."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.broker.replication.leadership import Lag, Leadership, epoch_error, followers_high_watermark
from rebalance_lab.wire.kafka.error_codes import ErrorCode


def leads(isr: tuple[int, ...] = (1, 2, 3), *, live: tuple[int, ...] = (1, 2, 3), **more: Any) -> Leadership:
    settings: dict[str, Any] = {
        "leader_epoch": 5,
        "partition_epoch": 7,
        "start_offset": 10,
        "now_us": 1000,
        "lag": Lag(100),
        "may_be_in_sync": live.__contains__,
    }
    return Leadership(1, (1, 2, 3), isr, **{**settings, **more})


def joined(leadership: Leadership, *, high_watermark: int, min_isr: int = 1) -> tuple[int, ...] | None:
    """The ISR once follower 2 has joined, of a leader whose log ends at 12."""
    return leadership.with_joined(2, leader_end=12, high_watermark=high_watermark, now_us=1001, min_isr=min_isr)


def test_the_high_watermark_is_where_all_in_sync_replicas_are() -> None:
    leadership = leads()
    assert leadership.high_watermark(4, 12, 1000, min_isr=1) == 4
    leadership.fetched(2, 12, 12, 1001)
    assert leadership.high_watermark(4, 12, 1001, min_isr=1) == 4
    leadership.fetched(3, 11, 12, 1002)
    assert leadership.high_watermark(4, 12, 1002, min_isr=1) == 11


def test_it_never_falls() -> None:
    leadership = leads((1,))
    assert leadership.high_watermark(15, 12, 1000, min_isr=1) == 15


def test_it_does_not_rise_while_too_few_are_in_sync() -> None:
    assert leads((1,)).high_watermark(4, 12, 1000, min_isr=2) == 4


def test_it_waits_for_a_live_follower_that_is_about_to_join() -> None:
    for live, expected in (((1, 2, 3), 11), ((1, 3), 12)):
        leadership = leads((1,), live=live)
        leadership.fetched(2, 11, 11, 1050)
        assert leadership.high_watermark(4, 12, 1060, min_isr=1) == expected


def test_it_waits_for_those_that_may_be_in_the_isr_already() -> None:
    leadership = leads((1,))
    leadership.fetched(2, 10, 10, 1000)
    leadership.proposed = (1, 2)
    assert leadership.high_watermark(4, 12, 9000, min_isr=1) == 10


@pytest.mark.parametrize(("end", "joins"), [(9, False), (10, True)])
def test_a_follower_joins_once_it_has_all_of_earlier_epochs(end: int, *, joins: bool) -> None:
    leadership = leads((1, 3))
    leadership.fetched(2, end, 12, 1001)
    assert joined(leadership, high_watermark=4) == ((1, 3, 2) if joins else None)


def test_before_kafka_7128_the_high_watermark_was_enough() -> None:
    leadership = leads((1, 3), joins_from_epoch_start=False)
    leadership.fetched(2, 4, 12, 1001)
    assert joined(leadership, high_watermark=4) == (1, 3, 2)


def test_a_dead_follower_does_not_join_nor_one_below_the_high_watermark() -> None:
    dead, behind = leads((1, 3), live=(1, 3)), leads((1, 3))
    for each in (dead, behind):
        each.fetched(2, 11, 12, 1001)
    assert joined(dead, high_watermark=4) is None
    assert joined(behind, high_watermark=12) is None


@pytest.mark.parametrize(("min_isr", "end", "joins"), [(3, 11, False), (3, 12, True), (2, 11, True)])
def test_with_the_cure_of_kafka_19996_it_has_to_have_caught_up_while_too_few_are_in_sync(
    min_isr: int, end: int, *, joins: bool
) -> None:
    leadership = leads((1, 3), joins_caught_up=True)
    leadership.fetched(2, end, 12, 1001)
    assert joined(leadership, high_watermark=4, min_isr=min_isr) == ((1, 3, 2) if joins else None)


def test_a_fetch_that_counts_may_let_its_sender_join() -> None:
    leadership = leads((1, 3))
    more = {"leader_end": 12, "high_watermark": 4, "now_us": 1001, "min_isr": 1}
    assert leadership.counted(2, 9, **more) is None
    assert (leadership.end_offsets[2], leadership.proposed) == (9, None)
    assert leadership.counted(2, 10, **more) == (1, 3, 2)
    assert (leadership.end_offsets[2], leadership.proposed) == (10, (1, 3, 2))


def test_only_one_change_is_asked_for_at_a_time() -> None:
    leadership = leads((1, 3))
    leadership.proposed = (1,)
    leadership.fetched(2, 12, 12, 1001)
    assert joined(leadership, high_watermark=4) is None
    assert leadership.without_laggards(12, 99_999) is None


def test_a_laggard_leaves_after_its_time() -> None:
    leadership = leads()
    leadership.fetched(2, 12, 12, 1050)
    assert leadership.without_laggards(12, 1100) is None
    assert leadership.without_laggards(12, 1101) == (1, 2)


def test_a_follower_at_the_end_stays_however_long_ago_it_fetched() -> None:
    leadership = leads((1, 2))
    leadership.fetched(2, 12, 12, 1001)
    assert leadership.without_laggards(12, 99_999) is None
    assert leadership.without_laggards(13, 99_999) == (1,)


def test_a_follower_that_had_all_at_its_last_fetch_was_caught_up_then() -> None:
    leadership = leads((1, 2))
    leadership.fetched(2, 10, 20, 1010)  # the leader had 20
    leadership.fetched(2, 20, 30, 1090)  # now it has them: it was caught up at 1010
    assert leadership.without_laggards(30, 1110) is None
    assert leadership.without_laggards(30, 1111) == (1,)


def test_the_lag_of_0_8_counts_messages_and_fetches() -> None:
    leadership = leads((1, 2), lag=Lag(100, messages=5))
    leadership.fetched(2, 10, 12, 1010)
    assert leadership.without_laggards(15, 1100) is None
    assert leadership.without_laggards(16, 1100) == (1,)
    assert leadership.without_laggards(12, 1111) == (1,)


def test_an_answer_that_comes_late_changes_nothing() -> None:
    leadership = leads()
    assert leadership.committed((1, 2), 8)
    assert not leadership.committed((1, 2, 3), 7)
    assert (leadership.isr, leadership.partition_epoch) == ((1, 2), 8)


def test_a_leader_that_is_elected_again_knows_where_its_followers_are() -> None:
    before = leads()
    before.fetched(2, 10, 10, 1001)
    before.fetched(3, 9, 10, 1001)
    assert leads(leader_epoch=6, before=before).high_watermark(4, 10, 1002, min_isr=1) == 9
    assert leads(leader_epoch=6).high_watermark(4, 10, 1002, min_isr=1) == 4


def test_a_leader_refuses_those_that_know_another_epoch() -> None:
    assert epoch_error(4, 5) is ErrorCode.FENCED_LEADER_EPOCH
    assert epoch_error(6, 5) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert epoch_error(5, 5) is None
    assert epoch_error(-1, 5) is None


def test_a_followers_high_watermark_stays_within_its_log() -> None:
    assert [followers_high_watermark(each, 2, 5) for each in (1, 4, 6)] == [2, 4, 5]


def test_a_leader_knows_where_its_followers_were() -> None:
    leadership = leads()
    leadership.fetched(2, 11, 12, 1001)
    assert leadership.end_offsets == {2: 11, 3: -1}


def test_after_a_missed_epoch_what_it_knew_can_be_wrong() -> None:
    before = leads()
    before.fetched(2, 10, 10, 1001)
    before.fetched(3, 9, 10, 1001)
    for missed, forgets, expected in ((0, True, 9), (1, False, 9), (1, True, 4)):
        after = leads(leader_epoch=6 + missed, before=before, forgets_if_missed=forgets)
        assert after.high_watermark(4, 10, 1002, min_isr=1) == expected
