"""unequal_views, on histories written by hand: partition t-0 with replicas on b1 and b2; b1 is the controller."""

from __future__ import annotations

import pytest
from broker_story import Brokers

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import BROKERS_KNOWN, METADATA_FORGOTTEN, METADATA_KNOWN, STATE_KNOWN


class Views(Brokers):
    def told(self, ms: float, number: int, leader: int, leader_epoch: int, *isr: int) -> EventId:
        return self.broker(ms, number, METADATA_KNOWN, leader=leader, leader_epoch=leader_epoch, isr=isr)

    def known(self, ms: float, number: int, epoch: int, leader: int, leader_epoch: int, *isr: int) -> EventId:
        return self.broker(ms, number, STATE_KNOWN, epoch=epoch, leader=leader, leader_epoch=leader_epoch, isr=isr)

    def live(self, ms: float, number: int, *brokers: int) -> EventId:
        return self.broker(ms, number, BROKERS_KNOWN, partition=None, brokers=brokers)


def cluster(isr_writer: str = "controller") -> Views:
    """zookeeper/0 and zookeeper/1 are the registrations, zookeeper/4 is the state."""
    story = Views(isr_writer=isr_writer)
    for number in (1, 2):
        story.registered(10, number)
    story.elected(20, 1, 1)
    story.state(100, 1, 0, 1, 2)
    story.known(101, 1, 1, 1, 0, 1, 2)
    for number in (1, 2):
        story.live(102, number, 1, 2)
        story.told(103, number, 1, 0, 1, 2)
    return story


STATE = ("zookeeper", 4)


def test_all_know_what_stands() -> None:
    finding = cluster().found("unequal_views")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "views": 5, "controllers": 1})
    assert finding.why == "at rest the controller and all brokers knew what the registry says"


def test_the_order_of_the_isr_is_left_out() -> None:
    story = cluster()
    story.told(200, 2, 1, 0, 2, 1)
    assert story.found("unequal_views").outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ((2, 0, 1, 2), "leader 2 in leader epoch 0 with the ISR [1, 2]"),
        ((1, 1, 1, 2), "leader 1 in leader epoch 1 with the ISR [1, 2]"),
        ((1, 0, 1), "leader 1 in leader epoch 0 with the ISR [1]"),
    ],
)
def test_a_broker_tells_clients_something_else(state: tuple[int, ...], told: str) -> None:
    story = cluster()
    view = story.told(200, 2, *state)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, view, ("runner", 0)))
    stands = "leader 1 in leader epoch 0 with the ISR [1, 2]"
    assert finding.why == f"t-0: at rest b2 tells clients of {told}, and the state znode has {stands}"


def test_a_broker_that_was_told_nothing() -> None:
    story = cluster()
    story.killed(200, "b2")
    story.restarted(300, 2)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, ("runner", 6)))
    assert finding.why.startswith("t-0: at rest b2 tells clients of nothing, and the state znode has leader 1")


def test_a_controller_that_remembers_something_else() -> None:
    story = cluster()
    view = story.known(200, 1, 1, 1, 0, 1)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, view, ("runner", 0)))
    assert finding.why.startswith(
        "t-0: at rest controller b1 knows of leader 1 in leader epoch 0 with the ISR [1], and"
    )


def test_what_it_knew_in_an_earlier_reign_does_not_count() -> None:
    story = cluster()
    story.deposed(200, 1)
    story.elected(201, 1, 2)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (STATE, ("runner", 0)))
    assert finding.why.startswith("t-0: at rest controller b1 knows of nothing")


def test_a_deposed_controller_need_know_nothing() -> None:
    story = cluster()
    story.deposed(200, 1)
    story.elected(201, 2, 2)
    story.known(202, 2, 2, 1, 0, 1, 2)
    story.known(203, 1, 1, 1, 0, 1)
    assert story.found("unequal_views").outcome is Outcome.CLEAN


def test_a_broker_that_takes_another_for_live() -> None:
    story = cluster()
    view = story.live(200, 2, 1, 2, 3)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), view, ("runner", 0)))
    assert finding.why == "at rest b2 considers brokers [1, 2, 3] live, and [1, 2] are registered"


def test_a_view_has_half_a_second() -> None:
    for at_ms, outcome in ((699, Outcome.CLEAN), (701, Outcome.VIOLATED)):
        story = cluster()
        story.state(200, 1, 0, 1)
        assert story.found("unequal_views", at_ms).outcome is outcome


def test_reports_of_leaders_come_later() -> None:
    for writer, outcome in (("leader", Outcome.CLEAN), ("controller", Outcome.VIOLATED)):
        story = cluster(isr_writer=writer)
        story.state(1000, 1, 0, 1)
        assert story.found("unequal_views", 10_900).outcome is outcome


def test_a_fault_that_has_just_ended() -> None:
    """After a cut TCP may wait for as long as it lasted."""
    for ended_ms, applies in ((8249, True), (8251, False)):
        story = cluster()
        story.paused(8000, ended_ms, "b2")
        story.rest(9000)
        assert CHECKS["unequal_views"].applies(story.history()) is applies


def test_a_broker_that_has_just_come_need_know_nothing() -> None:
    story = cluster()
    story.registered(8600, 3)
    assert story.found("unequal_views").outcome is Outcome.CLEAN


def test_without_metadata_the_check_does_not_apply() -> None:
    story = Views()
    story.registered(10, 1)
    story.state(100, 1, 0, 1)
    story.rest(9000)
    assert not CHECKS["unequal_views"].applies(story.history())


def deleted(story: Views, ms: float) -> EventId:
    return story.registry(ms, Kind.DELETED, "/brokers/topics/t/partitions/0/state", "0x1", group=None)


def test_a_broker_that_tells_clients_of_a_deleted_partition() -> None:
    story = cluster()
    story.broker(200, 1, METADATA_FORGOTTEN)
    gone = deleted(story, 300)
    finding = story.found("unequal_views")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (gone, ("b2", 3), ("runner", 0)))
    told = "leader 1 in leader epoch 0 with the ISR [1, 2]"
    assert finding.why == f"t-0: at rest b2 tells clients of {told}, and its state znode has been deleted"


def test_all_forget_a_deleted_partition() -> None:
    story = cluster()
    deleted(story, 300)
    for number in (1, 2):
        story.broker(400, number, METADATA_FORGOTTEN)
    assert story.found("unequal_views").outcome is Outcome.CLEAN


def test_a_partition_that_is_created_again() -> None:
    story = cluster()
    deleted(story, 300)
    story.state(400, 1, 0, 1, 2)
    assert story.found("unequal_views").outcome is Outcome.CLEAN


def test_a_broker_that_forgets_a_partition_too_early() -> None:
    story = cluster()
    story.broker(200, 2, METADATA_FORGOTTEN)
    finding = story.found("unequal_views")
    assert finding.why.startswith("t-0: at rest b2 tells clients of nothing, and the state znode has leader 1")


@pytest.mark.parametrize(("forgets", "outcome"), [((1, 2), Outcome.CLEAN), ((1,), Outcome.VIOLATED)])
def test_while_a_deletion_waits_nobody_tells_of_the_partition(forgets: tuple[int, ...], outcome: Outcome) -> None:
    """The state znode still stands, perhaps because a broker with a replica is dead."""
    story = cluster()
    asked = story.registry(300, Kind.CREATED, "/admin/delete_topics/t", "0x9", group=None)
    for number in forgets:
        story.broker(400, number, METADATA_FORGOTTEN)
    finding = story.found("unequal_views")
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.witness[0] == asked
        assert finding.why.endswith("with the ISR [1, 2], and its topic is to be deleted")
