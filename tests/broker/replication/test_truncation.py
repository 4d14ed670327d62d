"""Where a follower cuts its log. The follower's high watermark is 2, and its log ends at 6."""

from __future__ import annotations

import pytest

from rebalance_lab.broker.log.epochs import EpochEnd
from rebalance_lab.broker.replication.fetch_state import FETCH_TRANSITIONS, FetchState, first_state
from rebalance_lab.broker.replication.fetcher import Following, IllegalFetchTransition
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.broker.replication.truncation import (
    Truncation,
    UnknownEpoch,
    at_epoch_end,
    at_high_watermark,
    at_leader_end,
    diverging,
    must_restart,
)

UNKNOWN = EpochEnd(-1, -1)


def cut(leaders: EpochEnd, own: EpochEnd, *, compares_epochs: bool = True) -> Truncation:
    return at_epoch_end(leaders, own, high_watermark=2, end_offset=6, compares_epochs=compares_epochs)


def test_at_the_high_watermark_but_not_beyond_the_end() -> None:
    assert at_high_watermark(2, 6) == Truncation(2)
    assert at_high_watermark(7, 6) == Truncation(6)


@pytest.mark.parametrize(
    ("leaders", "own", "expected"),
    [
        (EpochEnd(3, 5), EpochEnd(3, 6), Truncation(5)),  # the leader has less of the epoch
        (EpochEnd(3, 9), EpochEnd(3, 6), Truncation(6)),  # the leader has more
        (EpochEnd(3, 5), EpochEnd(2, 4), Truncation(4, complete=False)),  # the follower does not have the epoch
        (EpochEnd(3, 5), UNKNOWN, Truncation(5)),  # nor any before it
        (UNKNOWN, UNKNOWN, Truncation(2)),  # the leader does not know the epoch
        (EpochEnd(-1, 4), EpochEnd(3, 6), Truncation(4)),  # an answer of 0.11, without an epoch
    ],
)
def test_at_the_end_of_an_epoch(leaders: EpochEnd, own: EpochEnd, expected: Truncation) -> None:
    assert cut(leaders, own) == expected


def test_before_kip_279_the_epoch_of_the_answer_was_not_looked_at() -> None:
    assert cut(EpochEnd(3, 5), EpochEnd(2, 4), compares_epochs=False) == Truncation(5)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (EpochEnd(3, 6), None),  # the leader has as much of the epoch
        (EpochEnd(3, 5), EpochEnd(3, 5)),  # it has less
        (EpochEnd(2, 6), EpochEnd(2, 6)),  # it does not have the epoch
    ],
)
def test_a_log_that_ends_at_6_in_epoch_3_parts_from_its_leaders(end: EpochEnd, expected: EpochEnd | None) -> None:
    assert diverging(end, 3, 6) == expected


def test_a_leader_that_does_not_know_the_epoch_finds_nothing() -> None:
    with pytest.raises(UnknownEpoch, match="leader epoch 3 is later than any"):
        diverging(UNKNOWN, 3, 6)


def test_out_of_range_a_log_is_cut_to_its_leaders_end_or_begins_anew() -> None:
    assert at_leader_end(5, 6) == Truncation(5)
    assert at_leader_end(6, 6) is None
    assert must_restart(7, 6, restarts_out_of_range=False)
    assert not must_restart(0, 6, restarts_out_of_range=False)
    assert must_restart(0, 6, restarts_out_of_range=True)


def test_who_truncates_before_it_fetches() -> None:
    truncating = {
        (each.value, has_epochs, same)
        for each in ReplicationRules
        for has_epochs in (False, True)
        for same in (False, True)
        if first_state(each, leader=1, followed=1 if same else None, has_epochs=has_epochs) is FetchState.TRUNCATING
    }
    asking = {(name, has, same) for name in ("kip-101", "kip-279") for has in (False, True) for same in (False, True)}
    fetching = {(name, False, same) for name in ("kip-320-first-try", "kip-320") for same in (False, True)}
    assert truncating == asking | fetching | {("high-watermark", False, False), ("high-watermark", True, False)}


@pytest.mark.parametrize("now", FetchState)
@pytest.mark.parametrize("target", FetchState)
def test_every_change_of_a_fetch_state(now: FetchState, target: FetchState) -> None:
    class Log:
        log = "t-0"

    following = Following(Log(), 1, now)  # type: ignore[arg-type]
    if target in FETCH_TRANSITIONS[now]:
        following.change(target)
        assert following.state is target
    else:
        with pytest.raises(IllegalFetchTransition):
            following.change(target)
        assert following.state is now
