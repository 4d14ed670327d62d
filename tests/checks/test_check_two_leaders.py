"""two_leaders, on histories written by hand: partition t-0 with replicas on the brokers 1 and 2."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import APPENDED, LEADS


class Leaders(Story):
    def __init__(self, *, wall_drift_us: int = 0) -> None:
        super().__init__(wall_drift_us=wall_drift_us)
        for number in (1, 2):
            session = f"0x{number}"
            self.add(number, f"b{number}", Kind.CONNECTED, session=session, group=None)
            self.registry(number, Kind.CREATED, f"/brokers/ids/{number}", session, group=None)

    def state(self, ms: float, leader: int, leader_epoch: int, zxid: int | None = None) -> EventId:
        data = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": [1, 2]}
        path, detail = "/brokers/topics/t/partitions/0/state", {"data": json.dumps(data)}
        return self.registry(ms, Kind.CHANGED, path, "0x1", detail=detail, group=None, zxid=zxid)

    def created_anew(self, ms: float) -> None:
        """The topic has been deleted meanwhile."""
        detail = {"data": '{"version":1,"partitions":{"0":[1,2]}}'}
        self.registry(ms, Kind.CREATED, "/brokers/topics/t", "0x1", detail=detail, group=None)

    def leads(self, ms: float, number: int, leader_epoch: int) -> EventId:
        return self._says(ms, number, LEADS, {"leader_epoch": leader_epoch})

    def appends(self, ms: float, number: int, leader_epoch: int) -> EventId:
        return self._says(ms, number, APPENDED, {"leader_epoch": leader_epoch, "first": 0, "last": 0})

    def _says(self, ms: float, number: int, kind: Kind, detail: dict[str, object]) -> EventId:
        name = f"b{number}"
        return self.add(ms, name, kind, member=name, topic="t", partition=0, detail=detail, group=None)

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["two_leaders"].judge(self.history())


def settled(**told: int) -> tuple[Leaders, EventId]:
    """Broker 1 leads in epoch 0 and takes a record. Returns the state, too."""
    story = Leaders(**told)
    state = story.state(10, 1, 0)
    story.leads(12, 1, 0)
    story.appends(13, 1, 0)
    return story, state


def test_one_leader_after_another() -> None:
    story, _ = settled()
    story.state(50, 2, 1)
    story.leads(52, 2, 1)
    story.appends(53, 2, 1)
    finding = story.found()
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "leaders": 2, "appends": 2})


def test_two_brokers_believe_in_one_epoch() -> None:
    """Both follow the state znode again before the rest, and no record is lost."""
    story, state = settled()
    wrong = story.leads(20, 2, 0)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (state, wrong))
    assert finding.why == "t-0: b2 leads in leader epoch 0, which the state znode gives to broker 1"


def test_two_brokers_take_records_in_one_epoch() -> None:
    story, state = settled()
    wrong = story.appends(20, 2, 0)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (state, wrong))


def test_a_leader_of_an_epoch_that_nobody_has_written() -> None:
    story, _ = settled()
    wrong = story.leads(20, 1, 1)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (wrong,))
    assert finding.why == "t-0: b1 leads in leader epoch 1, which the state znode gives to nobody"


def test_an_epoch_without_a_leader_has_none() -> None:
    story, _ = settled()
    story.state(50, -1, 1)
    story.leads(52, 2, 1)
    assert story.found().outcome is Outcome.VIOLATED


def test_an_epoch_that_is_given_twice_belongs_to_the_first() -> None:
    story, state = settled()
    story.state(50, 2, 0)
    wrong = story.leads(52, 2, 0)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (state, wrong))


def test_the_epochs_of_a_topic_that_is_created_anew_begin_anew() -> None:
    """A leader of the topic that was deleted, which does not know it yet, has its old epoch."""
    story, _ = settled()
    story.created_anew(40)
    story.state(50, 2, 0)
    story.leads(52, 2, 0)
    story.appends(53, 1, 0)
    assert story.found().outcome is Outcome.CLEAN
    wrong = story.leads(60, 1, 1)
    assert story.found().witness == (wrong,)


def test_of_a_topic_that_is_created_anew_two_begin_to_lead() -> None:
    """One of them led the topic that was deleted, in an epoch of this number."""
    story, _ = settled()
    story.created_anew(40)
    state = story.state(50, 2, 0)
    story.leads(52, 2, 0)
    wrong = story.leads(54, 1, 0)
    story.appends(55, 1, 0)
    finding = story.found()
    assert (finding.witness, finding.measures["count"]) == ((state, wrong), 1)


@pytest.mark.parametrize(("ms", "outcome"), [(51, Outcome.CLEAN), (40, Outcome.VIOLATED)])
def test_a_leader_leads_the_next_life_of_its_topic_from_its_state_on(ms: int, outcome: Outcome) -> None:
    story, _ = settled()
    story.created_anew(30)
    story.state(50, 1, 0)
    story.leads(ms, 1, 0)
    assert story.found().outcome is outcome


def test_a_broker_that_is_started_again_leads_in_its_epoch_again() -> None:
    story, _ = settled()
    for ms, fault in ((20, "kill"), (30, "restart")):
        detail = {"fault": fault, "target": "b1"}
        story.add(ms, "runner", Kind.FAULT_BEGAN, detail=detail, group=None)
    story.leads(40, 1, 0)
    assert story.found().measures["count"] == 0


def test_the_next_life_of_a_topic_has_no_leader_before_its_state() -> None:
    story, _ = settled()
    story.created_anew(30)
    wrong = story.leads(40, 2, 0)
    state = story.state(50, 2, 0)
    assert story.found().witness == (state, wrong)


@pytest.mark.parametrize(
    ("ms", "drift_us", "outcome"),
    [
        (48, 0, Outcome.CLEAN),  # what the clocks tolerate
        (40, 0, Outcome.VIOLATED),
        (40, 3_000, Outcome.UNKNOWN),
    ],
)
def test_a_leader_before_its_election(ms: int, drift_us: int, outcome: Outcome) -> None:
    story, _ = settled(wall_drift_us=drift_us)
    story.state(50, 2, 1)
    story.leads(ms, 2, 1)
    assert story.found().outcome is outcome


def test_a_deposed_leader_that_does_not_know_it_has_its_old_epoch() -> None:
    story, _ = settled()
    story.state(50, 2, 1)
    story.leads(52, 2, 1)
    story.appends(60, 1, 0)
    assert story.found().outcome is Outcome.CLEAN


def test_epochs_that_the_registry_has_lost_are_left_out() -> None:
    story, _ = settled()
    story.leads(52, 2, 1)
    story.state(80, 1, 2, zxid=9)
    finding = story.found()
    assert finding.outcome is Outcome.UNKNOWN
    assert "transactions between" in finding.why


def test_without_a_leader_nothing_is_said() -> None:
    story = Leaders()
    story.state(10, 1, 0)
    finding = story.found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no broker led")
