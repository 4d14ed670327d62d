"""needless_election, on histories written by hand: partition t-0 with replicas on b1, b2 and b3; states are written by
b1, the controller, in session 0x1."""

from __future__ import annotations

import json
import math

import pytest
from broker_story import Brokers

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.broker_absences import absences
from rebalance_lab.checks.periods import Period
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import FOLLOWS, REPLICA_ENDED, SHUTS_DOWN
from rebalance_lab.wire.cluster import reassignment_payload

REASSIGNMENT = "/admin/reassign_partitions"


class Reign(Brokers):
    """`looks`: whether the controller's looks at `/brokers/ids` are recorded."""

    def __init__(self, *, looks: bool = True) -> None:
        super().__init__()
        for number in (1, 2, 3):
            self.registered(10, number)
        self.elected(20, 1, 1)
        self.assigned(30, 1, 2, 3)
        if looks:
            self.look(40)
        self.first = self.written(100, 1, 0, 1, 2, 3)

    def look(self, ms: float) -> None:
        self.add(ms, "b1", Kind.INVOKED, session="0x1", group=None, detail={"op": "children", "path": "/brokers/ids"})

    def written(self, ms: float, leader: int, leader_epoch: int, *isr: int) -> EventId:
        return self.state(ms, leader, leader_epoch, *isr, session="0x1")

    def judged(self) -> Finding:
        return self.found("needless_election")


def wrong(story: Reign, state: EventId, what: str) -> None:
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, state))
    assert finding.why == f"t-0: {what}, which was registered all the time, and had not asked to shut down"


@pytest.mark.parametrize(
    ("leader", "isr", "what"),
    [
        (1, (1, 2, 3), "leader 1 is elected again"),
        (2, (1, 2, 3), "broker 2 replaces leader 1"),
        (1, (1, 3), "broker 2 is taken out of the ISR [1, 2, 3]"),
        (2, (2, 3), "broker 1 is taken out of the ISR [1, 2, 3]"),
    ],
)
def test_nothing_has_happened(leader: int, isr: tuple[int, ...], what: str) -> None:
    story = Reign()
    wrong(story, story.written(200, leader, 1, *isr), what)


@pytest.mark.parametrize(
    ("leader", "isr", "dead"),
    [(2, (2, 3), 1), (3, (2, 3), 1), (1, (1, 3), 2), (1, (1, 2, 3), 1)],
)
def test_a_broker_is_gone(leader: int, isr: tuple[int, ...], dead: int) -> None:
    story = Reign()
    story.unregistered(150, dead)
    story.written(200, leader, 1, *isr)
    finding = story.judged()
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "raised": 1})
    assert finding.why.endswith("and something had happened before each of 1 elections that asks for it")


def test_another_broker_is_gone() -> None:
    story = Reign()
    story.unregistered(150, 3)
    state = story.written(200, 1, 1, 1)
    wrong(story, state, "broker 2 is taken out of the ISR [1, 2, 3]")


def test_the_leader_stays_while_a_follower_is_gone_and_yet_another_leads() -> None:
    story = Reign()
    story.unregistered(150, 3)
    wrong(story, story.written(200, 2, 1, 1, 2), "broker 2 replaces leader 1")


def test_a_broker_that_is_back_when_the_controller_acts() -> None:
    story = Reign()
    story.unregistered(150, 2)
    story.registered(160, 2, "0x22")
    story.written(200, 1, 1, 1, 3)
    assert story.judged().outcome is Outcome.CLEAN


def test_leaders_change_an_isr_in_their_own_epoch() -> None:
    story = Reign()
    story.written(200, 1, 0, 1)
    assert not CHECKS["needless_election"].applies(story.history())


def bounced(*looks_ms: int) -> Reign:
    """b1 goes and comes back; the controller asks who is registered at these times, and elects it again."""
    story = Reign()
    story.unregistered(150, 1)
    story.registered(160, 1, "0x11")
    for ms in looks_ms:
        story.look(ms)
    return story


@pytest.mark.parametrize(
    ("looks_ms", "outcome"),
    [
        ((155,), Outcome.CLEAN),  # it is gone when the controller looks
        ((170,), Outcome.CLEAN),  # it has gone and come back since the look before
        ((155, 170), Outcome.VIOLATED),  # the controller has acted on it before
        ((170, 180), Outcome.VIOLATED),
    ],
)
def test_what_is_gone_must_be_news(looks_ms: tuple[int, ...], outcome: Outcome) -> None:
    story = bounced(*looks_ms)
    story.written(300, 1, 1, 1, 2, 3)
    assert story.judged().outcome is outcome


def test_to_a_new_controller_what_was_gone_before_it_is_no_news() -> None:
    story = bounced(155)
    story.add(200, "b2", Kind.INVOKED, session="0x2", group=None, detail={"op": "children", "path": "/brokers/ids"})
    wrong(story, story.state(300, 1, 1, 1, 2, 3, session="0x2"), "leader 1 is elected again")


def test_without_recorded_looks_all_that_has_happened_counts() -> None:
    story = Reign(looks=False)
    story.unregistered(50, 2)
    story.registered(60, 2, "0x22")
    story.written(200, 1, 1, 1, 3)
    assert story.judged().outcome is Outcome.CLEAN


def test_a_broker_that_asks_to_shut_down() -> None:
    story = Reign()
    story.broker(150, 1, SHUTS_DOWN, partition=None)
    story.written(200, 2, 1, 1, 2, 3)
    story.written(210, 2, 2, 2, 3)
    assert story.judged().outcome is Outcome.CLEAN


def test_a_disk_that_has_failed_excuses_its_own_replica() -> None:
    story = Reign()
    story.broker(150, 2, REPLICA_ENDED, role="offline")
    story.written(200, 1, 1, 1, 3)
    assert story.judged().outcome is Outcome.CLEAN


def test_a_replica_that_was_stopped_has_not_failed() -> None:
    story = Reign()
    story.broker(150, 2, REPLICA_ENDED, role="stopped")
    wrong(story, story.written(200, 1, 1, 1, 3), "broker 2 is taken out of the ISR [1, 2, 3]")


def test_a_disk_that_works_again() -> None:
    story = Reign()
    story.broker(20, 2, REPLICA_ENDED, role="offline")
    story.broker(30, 2, FOLLOWS, leader=1, leader_epoch=0, end_offset=0)
    wrong(story, story.written(200, 1, 1, 1, 3), "broker 2 is taken out of the ISR [1, 2, 3]")


def led_by_the_second() -> Reign:
    """b1 was gone, b2 leads since, and b1 is in sync again."""
    story = Reign()
    story.unregistered(150, 1)
    story.first = story.written(200, 2, 1, 2, 3)
    story.registered(210, 1, "0x11")
    story.written(220, 2, 1, 2, 3, 1)
    return story


def test_the_first_of_the_assignment_may_lead_again() -> None:
    story = led_by_the_second()
    story.written(300, 1, 2, 2, 3, 1)
    assert story.judged().measures == {"count": 0, "raised": 2}


def test_no_other_may() -> None:
    story = led_by_the_second()
    wrong(story, story.written(300, 3, 2, 2, 3, 1), "broker 3 replaces leader 2")


def test_one_without_a_leader_may_get_one() -> None:
    story = Reign()
    story.unregistered(150, 1)
    story.written(200, -1, 1, 1, 2, 3)
    story.registered(210, 1, "0x11")
    story.look(220)
    story.look(230)
    story.written(300, 1, 2, 1, 2, 3)
    assert story.judged().outcome is Outcome.CLEAN


@pytest.mark.parametrize(("answered", "applies"), [(False, False), (True, True)])
def test_a_controller_whose_write_was_not_answered_may_repeat_it(answered: bool, applies: bool) -> None:
    story = Reign()
    writes = {"op": "multi", "parts": [["check", "/controller_epoch"], ["set", "/brokers/topics/t/partitions/0/state"]]}
    asked = story.add(99, "b1", Kind.INVOKED, session="0x1", group=None, detail=writes)
    if answered:
        story.add(101, "b1", Kind.OK, session="0x1", group=None, detail={"op": "multi", "of": asked[1]})
    story.add(199, "b1", Kind.INVOKED, session="0x1", group=None, detail=writes)
    story.written(200, 1, 1, 1, 2, 3)
    assert CHECKS["needless_election"].applies(story.history()) is applies


def test_a_topic_that_is_being_deleted_is_not_judged() -> None:
    """Kafka takes the replicas that it deletes out of the ISR first."""
    story = Reign()
    story.registry(150, Kind.CREATED, "/admin/delete_topics/t", "0x9", group=None)
    story.written(200, -1, 1, 2, 3)
    assert not CHECKS["needless_election"].applies(story.history())


def test_a_topic_of_another_name_that_is_being_deleted_is_no_excuse() -> None:
    story = Reign()
    story.registry(150, Kind.CREATED, "/admin/delete_topics/t2", "0x9", group=None)
    wrong(story, story.written(200, 1, 1, 1, 2, 3), "leader 1 is elected again")


def reassigned(story: Reign, ms: float, *replicas: int, adding: tuple[int, ...] = ()) -> None:
    data = {"version": 2, "partitions": {"0": replicas}, "adding_replicas": {"0": adding} if adding else {}}
    story.registry(ms, Kind.CHANGED, "/brokers/topics/t", "0x1", detail={"data": json.dumps(data)}, group=None)


def test_while_a_partition_is_reassigned_its_leader_epoch_may_rise() -> None:
    story = Reign()
    reassigned(story, 40, 3, 1, 2, adding=(3,))
    story.written(200, 1, 1, 1, 2, 3)
    assert story.judged().outcome is Outcome.CLEAN


def test_as_soon_as_it_has_other_replicas() -> None:
    story = Reign()
    reassigned(story, 150, 3, 2)
    story.written(200, 3, 1, 3, 2)
    assert story.judged().outcome is Outcome.CLEAN


def test_once_it_has_been_reassigned_it_may_not_rise_any_more() -> None:
    story = Reign()
    reassigned(story, 110, 3, 1, 2, adding=(3,))
    reassigned(story, 120, 3, 1, 2)
    story.first = story.written(150, 1, 1, 1, 2, 3)
    wrong(story, story.written(200, 1, 2, 1, 2, 3), "leader 1 is elected again")


@pytest.mark.parametrize(
    ("named", "gone_ms", "outcome"),
    [("t", 150, Outcome.CLEAN), ("t", 90, Outcome.VIOLATED), ("u", 150, Outcome.VIOLATED)],
)
def test_while_a_request_names_the_partition(named: str, gone_ms: int, outcome: Outcome) -> None:
    story = Reign()
    request = {"data": reassignment_payload([((named, 0), (1, 2, 3))]).decode()}
    story.registry(50, Kind.CREATED, REASSIGNMENT, "0x9", detail=request, group=None)
    story.registry(gone_ms, Kind.DELETED, REASSIGNMENT, "0x1", group=None)
    story.written(200, 1, 1, 1, 2, 3)
    assert story.judged().outcome is outcome


def test_absences_of_a_broker() -> None:
    story = Reign()
    story.broker(150, 1, SHUTS_DOWN, partition=None)
    story.unregistered(160, 1)
    story.registered(170, 1, "0x11")
    story.unregistered(180, 2)
    found = absences(story.history())
    assert found[1] == [Period(-math.inf, 10_000), Period(150_000, 170_000)]
    assert found[2] == [Period(-math.inf, 10_000), Period(180_000, math.inf)]


# -- the first ISR ------------------------------------------------------------------------------


class Birth(Brokers):
    """The partition of brokers 1, 2 and 3 gets its first state at 100 ms; the controller has looked at 40 ms."""

    def __init__(self, *isr: int, session: str = "0x1") -> None:
        super().__init__()
        for number in (1, 2, 3):
            self.registered(10, number)
        self.elected(20, 1, 1)
        self.assignment = self.assigned(30, 1, 2, 3)
        self.look(40)
        self.session = session
        self.isr = isr

    def look(self, ms: float, *, behind: int | None = None) -> None:
        """`behind`: by how many transactions the server that answers lags; None if no answer is recorded."""
        detail = {"op": "children", "path": "/brokers/ids"}
        _, began = self.add(ms, "b1", Kind.INVOKED, session="0x1", group=None, detail=detail)
        if behind is not None:
            answered, zxid = {**detail, "of": began}, self._zxid - behind
            self.add(ms + 1, "b1", Kind.OK, session="0x1", group=None, zxid=zxid, detail=answered)

    def born(self) -> EventId:
        data = {"controller_epoch": 1, "leader": self.isr[0], "version": 1, "leader_epoch": 0, "isr": self.isr}
        path = "/brokers/topics/t/partitions/0/state"
        return self.registry(100, Kind.CREATED, path, self.session, detail={"data": json.dumps(data)}, group=None)


def test_a_replica_that_is_left_out_of_the_first_isr() -> None:
    story = Birth(1)
    state = story.born()
    finding = story.found("needless_election")
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 2)
    assert finding.witness == (story.assignment, state)
    assert finding.why == (
        "t-0: broker 2 is left out of the first ISR [1], which was registered all the time, and had not asked to shut"
        " down"
    )


def test_all_are_in_the_first_isr() -> None:
    story = Birth(1, 2, 3)
    story.born()
    assert story.found("needless_election") == Finding(
        Outcome.CLEAN, "no replica was left out for nothing", (), {"count": 0, "raised": 0}
    )


@pytest.mark.parametrize("back_ms", [None, 60])
def test_a_replica_that_was_gone_when_the_controller_looked(back_ms: float | None) -> None:
    story = Birth(1, 2)
    story.unregistered(35, 3)
    if back_ms is not None:
        story.registered(back_ms, 3, "0x33")
    story.born()
    assert story.found("needless_election").outcome is Outcome.CLEAN


def test_a_replica_that_was_back_before_the_controller_looked() -> None:
    story = Birth(1, 2)
    story.unregistered(31, 3)
    story.registered(35, 3, "0x33")
    story.look(38)
    story.born()
    assert story.found("needless_election").outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("behind", "outcome"), [(0, Outcome.VIOLATED), (1, Outcome.CLEAN)])
def test_what_a_server_that_lags_has_not_answered_is_news(behind: int, outcome: Outcome) -> None:
    """Found in a simulated trial: a follower of ZooKeeper answered without the broker that had just registered."""
    story = Birth(1, 2)
    story.unregistered(35, 3)
    story.registered(45, 3, "0x33")
    story.look(50, behind=behind)
    story.born()
    assert story.found("needless_election").outcome is outcome
