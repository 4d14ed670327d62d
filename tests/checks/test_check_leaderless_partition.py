"""leaderless_partition, on histories written by hand: brokers 1, 2 and 3; 3 is the controller, and 1 leads and dies."""

from __future__ import annotations

import math

import pytest
from led_story import DIED, LedPartition

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.periods import Period, common, joined, without
from rebalance_lab.history.events import Kind
from rebalance_lab.history.replicas import FOLLOWS, REPLICA_ENDED, SHUTS_DOWN

LATE = DIED + 1500


class Partition(LedPartition):
    def requested(self, ms: float, kind: Kind = Kind.CREATED) -> None:
        self.registry(ms, kind, "/admin/delete_topics/t", "0x9", group=None)

    def judged(self, at_ms: float = LATE) -> Finding:
        return self.taken_down("leaderless_partition", at_ms)


def test_a_leader_that_is_elected_at_once() -> None:
    story = Partition()
    story.died()
    story.state(DIED + 300, 2, 1, 2)
    finding = story.judged()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "longest_us": 300_000, "partitions": 1}


def test_no_leader() -> None:
    story = Partition()
    story.died()
    assert story.judged() == Finding(
        Outcome.VIOLATED,
        "t-0 had no leader for 1.500 s, broker 2 could have led, and b3 controlled",
        (story.stood, story.registrations[2], story.controllers[0]),
        {"count": 1, "longest_us": 1_500_000, "partitions": 1},
    )


def test_a_moment_is_not_enough() -> None:
    story = Partition()
    story.died()
    assert story.judged(DIED + 999).outcome is Outcome.CLEAN


def test_a_state_that_is_written_again_without_a_leader_gains_no_time() -> None:
    story = Partition()
    story.died()
    story.state(DIED + 700, -1, 1, 2)
    assert story.judged().outcome is Outcome.VIOLATED


def test_a_leader_that_is_dead_is_none() -> None:
    story = Partition()
    story.died()
    story.state(DIED + 100, 1, 1, 1, 2)
    assert story.judged().outcome is Outcome.VIOLATED


def test_replicas_outside_the_isr_need_not_lead() -> None:
    story = Partition()
    story.state(1000, 1, 0, 1)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


def unclean(story: Partition) -> Partition:
    """Broker 2 has left the ISR, and broker 1 dies."""
    story.state(1000, 1, 0, 1)
    story.died()
    return story


def test_replicas_outside_the_isr_lead_if_unclean_elections_are_allowed() -> None:
    story = unclean(Partition(unclean=True))
    story.state(DIED + 300, 2, 1, 2)
    finding = story.judged()
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 300_000)
    story = unclean(Partition(unclean=True))
    finding = story.judged()
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "t-0 had no leader for 1.500 s, broker 2 could have led, and b3 controlled"


def test_a_broker_without_a_replica_leads_in_no_election() -> None:
    story = Partition(unclean=True)
    story.died(number=2)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        ([(500, "true")], Outcome.VIOLATED),
        ([(500, "true"), (DIED + 900, "false")], Outcome.CLEAN),
        ([(DIED + 600, "true")], Outcome.CLEAN),
    ],
)
def test_the_time_counts_from_when_the_topic_allows_it(settings: list[tuple[int, str]], outcome: Outcome) -> None:
    story = Partition()
    for ms, text in settings:
        story.configured(ms, unclean_leader_election_enable=text)
    assert unclean(story).judged().outcome is outcome


@pytest.mark.parametrize(("at_ms", "outcome"), [(3900, Outcome.CLEAN), (4500, Outcome.VIOLATED)])
def test_the_last_of_the_isr_comes_back(at_ms: int, outcome: Outcome) -> None:
    story = Partition()
    story.state(1000, 1, 0, 1)
    story.died()
    story.state(DIED + 100, -1, 1, 1)
    story.restarted(DIED + 1000, 1)
    story.registered(DIED + 3000, 1, "0x11")
    assert story.judged(DIED + at_ms).outcome is outcome


def test_a_candidate_that_is_dead_and_still_registered_need_not_lead() -> None:
    story = Partition()
    story.killed(DIED - 100, "b2")
    story.died()
    assert story.judged().outcome is not Outcome.VIOLATED


@pytest.mark.parametrize("number", [2, 3])
def test_a_candidate_or_controller_that_is_out_of_touch(number: int) -> None:
    story = Partition()
    story.died()
    story.add(DIED + 800, f"b{number}", Kind.DISCONNECTED, session=f"0x{number}", group=None)
    assert story.judged().outcome is Outcome.CLEAN
    story = Partition()
    story.died()
    story.add(DIED + 800, f"b{number}", Kind.DISCONNECTED, session=f"0x{number}", group=None)
    story.connected(DIED + 1200, number)
    assert story.judged(DIED + 2300).outcome is Outcome.VIOLATED


def test_each_controller_has_its_time() -> None:
    story = Partition()
    story.died()
    story.deposed(DIED + 700, 3)
    story.elected(DIED + 800, 2, 2)
    assert story.judged().outcome is Outcome.CLEAN
    story = Partition()
    story.died()
    story.deposed(DIED + 100, 3)
    story.elected(DIED + 200, 2, 2)
    assert story.judged().outcome is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("gone", "late_ms", "outcome"),
    [({}, 2100, Outcome.VIOLATED), ({}, 1900, Outcome.CLEAN), ({"with_session": True}, 2100, Outcome.CLEAN)],
)
def test_controllers_that_give_up_one_after_another(gone: dict[str, bool], late_ms: int, outcome: Outcome) -> None:
    """Each has half a second; but if its session ends, it does not give up."""
    story = Partition()
    story.died()
    for at in range(5):
        number = 3 - at % 2
        path = "/controller"
        story.registry(DIED + 450 + 450 * at, Kind.DELETED, path, f"0x{number}", detail=gone, group=None)
        story.elected(DIED + 460 + 450 * at, 5 - number, 2 + at)
    finding = story.judged(DIED + late_ms)
    assert finding.outcome is outcome
    assert ("gave up, one after another" in finding.why) is (outcome is Outcome.VIOLATED)


def test_without_a_controller_nobody_elects() -> None:
    story = Partition()
    story.deposed(DIED - 1000, 3)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


def test_a_broker_that_shuts_down_or_has_lost_its_disk_need_not_lead() -> None:
    story = Partition()
    story.broker(DIED - 100, 2, SHUTS_DOWN, partition=None)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN
    story = Partition()
    story.broker(100, 2, FOLLOWS, leader=1, leader_epoch=0, end_offset=0)
    story.broker(DIED - 100, 2, REPLICA_ENDED, role="offline")
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


def test_a_broker_that_registers_anew_has_its_disk_again() -> None:
    story = Partition()
    story.broker(100, 2, FOLLOWS, leader=1, leader_epoch=0, end_offset=0)
    story.broker(500, 2, REPLICA_ENDED, role="offline")
    story.unregistered(600, 2)
    story.registered(900, 2, "0x22")
    story.died()
    assert story.judged().outcome is Outcome.VIOLATED


def test_a_leader_that_has_lost_its_disk_is_none() -> None:
    story = Partition()
    story.leads(100, 1, 0, 1, 2)
    story.broker(DIED, 1, REPLICA_ENDED, role="offline")
    assert story.judged().outcome is Outcome.VIOLATED


def test_a_link_between_two_brokers_is_none_with_zookeeper() -> None:
    story = Partition()
    detail = {"fault": "slow-link", "target": "b3", "peer": "b2", "session": "0x3", "must_outlast_session": False}
    began = story.add(500, "runner", Kind.FAULT_BEGAN, member="b3", detail=detail)
    story.bit(500, "slow-link", "b3", began)
    story.died()
    assert story.judged().outcome is Outcome.VIOLATED


@pytest.mark.parametrize("number", [2, 3])
def test_a_registration_that_is_renewed_in_its_session(number: int) -> None:
    """What was before it counts as well."""
    story = Partition()
    story.died()
    story.unregistered(LATE, number)
    story.registry(LATE + 1, Kind.CREATED, f"/brokers/ids/{number}", f"0x{number}", group=None)
    assert story.judged(LATE + 100).outcome is Outcome.VIOLATED


def test_a_leader_that_shuts_down_still_leads() -> None:
    story = Partition()
    story.broker(DIED - 1500, 1, SHUTS_DOWN, partition=None)
    assert story.judged(DIED).outcome is Outcome.CLEAN


def test_topics_that_are_to_be_deleted() -> None:
    story = Partition()
    story.requested(DIED + 500)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


def test_a_new_partition() -> None:
    story = Partition(has_state=False)
    assert story.judged(1019).outcome is Outcome.CLEAN
    story = Partition(has_state=False)
    finding = story.judged(1500)
    assert (finding.outcome, finding.witness[0]) == (Outcome.VIOLATED, story.assignment)
    story = Partition(has_state=False)
    story.registry(500, Kind.DELETED, "/brokers/topics/t", "0x9", group=None)
    assert story.judged(2500).outcome is Outcome.CLEAN


def test_a_partition_that_is_assigned_no_more() -> None:
    story = Partition()
    story.registry(1000, Kind.DELETED, "/brokers/topics/t", "0x9", group=None)
    story.died()
    assert story.judged().outcome is Outcome.CLEAN


@pytest.mark.parametrize(("at_ms", "outcome"), [(4900, Outcome.CLEAN), (5100, Outcome.VIOLATED)])
def test_in_real_time_a_controller_has_five_seconds(at_ms: int, outcome: Outcome) -> None:
    story = Partition(world="processes")
    story.died()
    assert story.judged(DIED + at_ms).outcome is outcome


@pytest.mark.parametrize(
    ("world", "parameters", "partitions", "limit_us"),
    [
        ("simulated", {"latency_max_us": 2000}, 300, 1_050_000),
        ("simulated", {"latency_max_us": 100_000}, 1, 3_500_000),
        ("simulated", {"latency_max_us": 2000, "form": "0.8.2"}, 300, 4_050_000),
        ("processes", {"latency_max_us": 2000}, 300, 5_000_000),
    ],
)
def test_how_long_an_election_may_take(
    world: str, parameters: dict[str, object], partitions: int, limit_us: int
) -> None:
    assert bound_us(world, parameters, partitions) == limit_us


def test_periods() -> None:
    a, b, c = Period(0, 10), Period(10, 20), Period(30, 40)
    assert joined([c, b, a]) == [Period(0, 20), c]
    assert common([a, c], [Period(5, 35)]) == [Period(5, 10), Period(30, 35)]
    assert common([a], [b]) == []
    assert without([c, a]) == [Period(-math.inf, 0), Period(10, 30), Period(40, math.inf)]
    assert without([]) == [Period(-math.inf, math.inf)]
    assert without([Period(-math.inf, math.inf)]) == []
