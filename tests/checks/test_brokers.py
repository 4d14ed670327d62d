"""When the registry had no broker, told from the coming and going of broker znodes."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks.rebalance_evidence import may_lack_brokers
from rebalance_lab.history.events import Kind


def story(*changes: tuple[float, int, Kind], until_ms: float = 100, wall_drift_us: int = 0) -> GroupStory:
    """Brokers that come and go, in a trial that begins at 0."""
    told = GroupStory(wall_drift_us=wall_drift_us)
    for ms, number, kind in changes:
        told.broker(ms, number, kind)
    told.rest(until_ms)
    return told


COME, GO = Kind.CREATED, Kind.DELETED
ONE_GOES = ((10, 0, COME), (50, 0, GO), (60, 0, COME))
TWO_GO = ((10, 0, COME), (20, 1, COME), (30, 0, GO), (50, 1, GO))


@pytest.mark.parametrize(
    ("changes", "begin_ms", "end_ms", "lacks"),
    [
        (ONE_GOES, 0, 5, True),  # before the first came
        (ONE_GOES, 11.9, 20, True),  # 2 ms either way
        (ONE_GOES, 12.1, 47.9, False),
        (ONE_GOES, 20, 48, True),
        (ONE_GOES, 62, 70, True),
        (ONE_GOES, 62.1, 99, False),
        (TWO_GO, 30, 40, False),  # one is left
        (TWO_GO, 30, 48, True),
        (TWO_GO, 101.9, 110, True),  # none came back until the last event
        (TWO_GO, 102.1, 110, False),
        ((), 40, 50, True),
    ],
)
def test_a_stretch_may_lack_brokers(
    changes: tuple[tuple[float, int, Kind], ...], begin_ms: float, end_ms: float, *, lacks: bool
) -> None:
    assert may_lack_brokers(story(*changes).history(), round(begin_ms * 1000), round(end_ms * 1000)) is lacks


@pytest.mark.parametrize(("drift_us", "lacks"), [(2_000, False), (2_001, True)])
def test_under_a_clock_that_drifted_any_time_without_brokers_may_be_the_stretchs(drift_us: int, *, lacks: bool) -> None:
    assert may_lack_brokers(story(*ONE_GOES, wall_drift_us=drift_us).history(), 70_000, 80_000) is lacks


def test_other_znodes_are_no_brokers() -> None:
    told = GroupStory()
    told.joins(5, "m1")
    told.topic(6, "t", 2)
    told.rest(100)
    assert may_lack_brokers(told.history(), 40_000, 50_000)


def test_nobody_came_back_until_the_very_last_event() -> None:
    told = GroupStory(ended=False)
    told.broker(10, 0, COME)
    told.broker(50, 0, GO)
    told.rest(100)
    assert may_lack_brokers(told.history(), 90_000, 95_000)


@pytest.mark.parametrize(("at_us", "lacks"), [(2_000, True), (2_001, False)])
def test_a_history_without_events_ends_where_it_begins(at_us: int, *, lacks: bool) -> None:
    assert may_lack_brokers(GroupStory(ended=False).history(), at_us, at_us) is lacks
