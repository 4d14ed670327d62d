"""leader_outside_isr, on histories written by hand: partition t-0 with the replicas 1, 2, 3."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

State = tuple[int, int, tuple[int, ...]]


class States(Story):
    def __init__(self, *, unclean: bool = False) -> None:
        super().__init__(unclean=unclean)
        assignment = {"version": 1, "partitions": {"0": [1, 2, 3]}}
        detail = {"path": "/brokers/topics/t", "data": json.dumps(assignment)}
        self.add(1, "zookeeper", Kind.CREATED, detail=detail, zxid=1)
        self._count = 0

    def state(self, leader: int, leader_epoch: int, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
        self._count += 1
        kind = Kind.CREATED if self._count == 1 else Kind.CHANGED
        detail = {"path": "/brokers/topics/t/partitions/0/state", "data": json.dumps(data)}
        return self.add(10 * self._count, "zookeeper", kind, detail=detail, zxid=1 + self._count)

    def created_anew(self) -> None:
        """The topic has been deleted meanwhile."""
        self._count += 1
        detail = {"path": "/brokers/topics/t", "data": '{"version":1,"partitions":{"0":[1,2,3]}}'}
        self.add(10 * self._count, "zookeeper", Kind.CREATED, detail=detail, zxid=1 + self._count)

    def configured(self, unclean: str) -> None:
        """The topic gets a setting of its own."""
        self._count += 1
        data = json.dumps({"version": 1, "config": {"unclean.leader.election.enable": unclean}})
        detail = {"path": "/config/topics/t", "data": data}
        self.add(10 * self._count, "zookeeper", Kind.CHANGED, detail=detail, zxid=1 + self._count)

    def found(self) -> Finding:
        self.add(900, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
        return CHECKS["leader_outside_isr"].judge(self.history())


def test_an_election_from_the_isr() -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(-1, 1, 2, 3)
    story.state(3, 2, 2, 3)
    finding = story.found()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "elections": 1, "unclean": 0}


def test_an_election_from_outside_it() -> None:
    story = States()
    before, after = story.state(1, 0, 1), story.state(2, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))


@pytest.mark.parametrize(("own", "outcome"), [("true", Outcome.CLEAN), ("false", Outcome.VIOLATED)])
def test_a_topic_s_own_setting_decides(own: str, outcome: Outcome) -> None:
    story = States(unclean=own == "false")
    story.configured(own)
    story.state(1, 0, 1)
    story.state(2, 1, 2)
    assert story.found().outcome is outcome


def test_a_setting_that_is_withdrawn_while_it_is_used() -> None:
    """The controller has read it before."""
    story = States()
    story.configured("true")
    story.state(1, 0, 1)
    story.configured("false")
    story.state(2, 1, 2)
    assert story.found().outcome is Outcome.CLEAN
    story.state(1, 2, 1)
    assert story.found().outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("anew", "outcome"), [(True, Outcome.CLEAN), (False, Outcome.VIOLATED)])
def test_of_a_topic_that_is_created_anew_nothing_is_expected(anew: bool, outcome: Outcome) -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(2, 1, 2)
    if anew:
        story.created_anew()
    story.state(1, 0, 1, 3)
    assert story.found().outcome is outcome


def test_an_unclean_election_that_is_allowed_is_counted() -> None:
    story = States(unclean=True)
    story.state(1, 0, 1)
    story.state(2, 1, 2)
    finding = story.found()
    assert (finding.outcome, finding.measures["unclean"]) == (Outcome.CLEAN, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        (2, 2, (2, 3)),  # the leader epoch rises by two
        (2, 0, (2, 3)),  # a new leader in the old epoch
        (2, 1, ()),  # an empty ISR
        (2, 1, (2, 4)),  # a stranger
        (2, 1, (3,)),  # a leader beside the ISR
    ],
)
def test_states_that_must_not_be(wrong: State) -> None:
    leader, epoch, isr = wrong
    story = States(unclean=True)
    story.state(1, 0, 1, 2, 3)
    story.state(leader, epoch, *isr)
    assert story.found().outcome is Outcome.VIOLATED


def test_a_leader_that_stays_may_have_another_isr_in_the_same_epoch() -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(1, 0, 1, 2)
    story.state(1, 1, 1, 2)
    story.state(2, 2, 1, 2)
    assert story.found().outcome is Outcome.CLEAN


def test_without_a_state_nothing_is_proven() -> None:
    first = States()
    first.state(1, 0, 1, 2, 3)
    assert first.found().outcome is Outcome.CLEAN
    assert States().found().outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("unclean", [False, True])
def test_an_isr_that_grows_while_nobody_leads(*, unclean: bool) -> None:
    """Only a leader knows who is in sync. Else a controller writes whom it will elect into the ISR first."""
    story = States(unclean=unclean)
    story.state(1, 0, 1)
    before, after = story.state(-1, 1, 1), story.state(-1, 2, 1, 2)
    story.state(2, 3, 2)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
    assert finding.why == "t-0: broker 2 joined the ISR [1] without a leader"


def test_an_election_that_lets_a_replica_into_the_isr() -> None:
    story = States()
    before, after = story.state(1, 0, 1, 2), story.state(2, 1, 2, 3)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))


def test_a_leader_may_let_a_replica_into_the_isr() -> None:
    story = States()
    story.state(1, 0, 1, 2)
    story.state(1, 0, 1, 2, 3)
    assert story.found().outcome is Outcome.CLEAN


def test_who_is_elected_from_outside_the_isr_is_alone_in_sync() -> None:
    story = States(unclean=True)
    before, after = story.state(1, 0, 1), story.state(2, 1, 2, 3)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
    assert finding.why == "t-0: broker 2, which was not in sync, leads, and 3 counts as in sync"


@pytest.mark.parametrize(
    ("leader", "isr", "outcome"),
    [(1, (1, 2, 3), Outcome.CLEAN), (2, (2, 3), Outcome.CLEAN), (3, (1, 2, 3), Outcome.VIOLATED)],
)
def test_the_first_leader_is_the_first_of_the_assignment_that_is_in_sync(
    leader: int, isr: tuple[int, ...], outcome: Outcome
) -> None:
    story = States()
    first = story.state(leader, 0, *isr)
    finding = story.found()
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (first,)
        assert finding.why == "t-0: broker 3 leads first; of the assignment [1, 2, 3] it should be 1"
