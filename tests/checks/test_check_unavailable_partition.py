"""unavailable_partition, on histories written by hand: brokers 1, 2 and 3; 3 is the controller, 1 leads and dies."""

from __future__ import annotations

from typing import Any

import pytest
from broker_story import Brokers
from led_story import DIED, LedPartition

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.replicas import FOLLOWS, REPLICA_ENDED, SHUTS_DOWN

BACK = DIED + 1000
LATE = BACK + 1500


class AllDown(LedPartition):
    """Broker 2 has left the ISR when broker 1 dies; 2 returns first, at BACK."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.died(900, 2)
        self.alone = self.state(1000, 1, 0, 1)
        self.died()
        self.restarted(BACK - 10, 2)
        self.returned = self.registered(BACK, 2, "0x12")

    def judged(self, at_ms: float = LATE) -> Finding:
        return self.taken_down("unavailable_partition", at_ms)


def test_a_partition_that_waits_for_one_of_the_isr() -> None:
    story = AllDown()
    story.restarted(BACK + 1490, 1)
    led = story.registered(BACK + 1500, 1, "0x11")
    story.state(BACK + 1550, 1, 1, 1)
    assert story.judged(BACK + 2000) == Finding(
        Outcome.VIOLATED,
        "t-0 had no live leader for 2.500 s, and broker 2, which has a replica, lived for 1.500 s of it",
        (story.alone, story.returned, led),
        {"count": 1, "longest_us": 2_500_000},
    )


def test_one_that_waits_with_a_state_that_names_no_leader() -> None:
    story = AllDown()
    story.state(DIED + 100, -1, 1, 1)
    story.restarted(BACK + 1490, 1)
    story.registered(BACK + 1500, 1, "0x11")
    led = story.state(BACK + 1550, 1, 2, 1)
    finding = story.judged(BACK + 2000)
    assert (finding.outcome, finding.witness[1:]) == (Outcome.VIOLATED, (story.returned, led))
    assert finding.measures["longest_us"] == 2_550_000


def test_the_first_that_returns_leads() -> None:
    story = AllDown()
    story.state(BACK + 300, 2, 1, 2)
    finding = story.judged()
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "longest_us": 1_300_000})


@pytest.mark.parametrize(("waits_ms", "outcome"), [(990, Outcome.CLEAN), (1010, Outcome.VIOLATED)])
def test_an_election_has_a_second(waits_ms: int, outcome: Outcome) -> None:
    story = AllDown()
    story.state(BACK + waits_ms, 2, 1, 2)
    assert story.judged().outcome is outcome


@pytest.mark.parametrize(("waits_ms", "outcome"), [(4900, Outcome.CLEAN), (5100, Outcome.VIOLATED)])
def test_in_real_time_it_has_five(waits_ms: int, outcome: Outcome) -> None:
    assert AllDown(world="processes").judged(BACK + waits_ms).outcome is outcome


def test_while_no_replica_lives_nobody_can_lead() -> None:
    """Broker 3 lives, and has no replica."""
    story = LedPartition()
    story.died(number=2)
    story.died()
    finding = story.taken_down("unavailable_partition", DIED + 5000)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "longest_us": 5_000_000})


def test_it_does_not_matter_why_nobody_leads() -> None:
    """Broker 2 is in the ISR, and there is no controller."""
    story = LedPartition()
    story.deposed(DIED - 1000, 3)
    story.died()
    assert story.taken_down("unavailable_partition", LATE).outcome is Outcome.VIOLATED


def test_a_replica_that_is_out_of_touch_does_not_live() -> None:
    story = AllDown()
    story.add(BACK + 800, "b2", Kind.DISCONNECTED, session="0x12", group=None)
    assert story.judged().outcome is Outcome.CLEAN
    story = AllDown()
    story.killed(BACK + 800, "b2")
    assert story.judged().outcome is not Outcome.VIOLATED


def test_a_replica_that_shuts_down_or_has_lost_its_disk_does_not_live() -> None:
    story = AllDown()
    story.broker(BACK + 100, 2, SHUTS_DOWN, partition=None)
    assert story.judged().outcome is Outcome.CLEAN
    story = AllDown()
    story.broker(BACK + 100, 2, FOLLOWS, leader=1, leader_epoch=0, end_offset=0)
    story.broker(BACK + 200, 2, REPLICA_ENDED, role="offline")
    assert story.judged().outcome is Outcome.CLEAN


def test_several_times_of_one_partition_count_once_and_the_longest_is_measured() -> None:
    story = AllDown()
    story.state(BACK + 1200, 2, 1, 2)
    story.unregistered(BACK + 2000, 2, "0x12")
    story.registered(BACK + 2100, 2, "0x22")
    story.state(BACK + 2200, -1, 2, 2)
    finding = story.judged(BACK + 5000)
    assert finding.measures == {"count": 1, "longest_us": 2_800_000}


def test_a_topic_that_is_to_be_deleted_needs_no_leader() -> None:
    story = AllDown()
    story.registry(BACK + 200, Kind.CREATED, "/admin/delete_topics/t", "0x9", group=None)
    finding = story.judged()
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 1_200_000)


def test_without_partitions_there_is_nothing_to_look_at() -> None:
    check = CHECKS["unavailable_partition"]
    assert [check.applies(story.history()) for story in (Brokers(), LedPartition())] == [False, True]


def test_clocks_that_drifted_prove_nothing() -> None:
    finding = AllDown(wall_drift_us=50_000).judged()
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, {"count": 0, "longest_us": 2_500_000})
