"""stale_role, on histories written by hand: partition t-0 with the replicas 1, 2."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.history.replicas import FOLLOWS, LEADS, REPLICA_ENDED


class Cluster(Story):
    def __init__(self) -> None:
        super().__init__()
        self._zxids = 0
        for number in (1, 2):
            self.add(0, f"b{number}", Kind.CONNECTED, session=f"0x{number}")
            self.registered(1, number)
        self.assigned(2, 1, 2)

    def _logged(self, ms: float, kind: Kind, path: str, data: str = "{}", **more: str) -> EventId:
        self._zxids += 1
        return self.add(ms, "zookeeper", kind, detail={"path": path, "data": data}, zxid=self._zxids, **more)

    def assigned(self, ms: float, *replicas: int) -> EventId:
        assignment = {"version": 1, "partitions": {"0": replicas}}
        kind = Kind.CREATED if self._zxids == 2 else Kind.CHANGED
        return self._logged(ms, kind, "/brokers/topics/t", json.dumps(assignment))

    def registered(self, ms: float, number: int) -> EventId:
        return self._logged(ms, Kind.CREATED, f"/brokers/ids/{number}", session=f"0x{number}")

    def gone(self, ms: float, number: int) -> EventId:
        return self._logged(ms, Kind.DELETED, f"/brokers/ids/{number}", session=f"0x{number}")

    def state(self, ms: float, leader: int, leader_epoch: int) -> EventId:
        data = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": [1, 2]}
        kind = Kind.CREATED if self._zxids == 3 else Kind.CHANGED
        return self._logged(ms, kind, "/brokers/topics/t/partitions/0/state", json.dumps(data))

    def says(self, ms: float, actor: str, kind: Kind, **detail: object) -> EventId:
        return self.add(ms, actor, kind, member=actor, topic="t", partition=0, detail=detail)

    def restarted(self, ms: float, actor: str) -> None:
        fault = self.add(ms, "runner", Kind.FAULT_BEGAN, detail={"fault": RESTART, "target": actor})
        self.add(
            ms, "runner", Kind.FAULT_BIT, detail={"fault": RESTART, "target": actor, "of": fault[1], "proof": "up"}
        )
        self.add(ms, "runner", Kind.FAULT_ENDED, detail={"fault": RESTART, "target": actor, "of": fault[1]})

    def rest(self, ms: float) -> EventId:
        return self.add(ms, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})

    def found(self) -> Finding:
        return CHECKS["stale_role"].judge(self.history())


def settled() -> tuple[Cluster, EventId, EventId]:
    """b1 leads, b2 follows. Returns the state and what b2 believes, too."""
    story = Cluster()
    state = story.state(5, 1, 0)
    story.says(10, "b1", LEADS, leader_epoch=0)
    follows = story.says(11, "b2", FOLLOWS, leader=1, leader_epoch=0)
    return story, state, follows


def test_all_have_been_told() -> None:
    story, _, _ = settled()
    story.rest(2000)
    assert story.found() == Finding(
        Outcome.CLEAN, "at rest each broker leads and follows as the state znode says", (), {"count": 0, "roles": 2}
    )


def test_a_broker_that_came_back_and_was_told_nothing() -> None:
    story, state, _ = settled()
    story.restarted(100, "b2")
    rest = story.rest(2000)
    assert story.found() == Finding(
        Outcome.VIOLATED,
        "t-0: b2 has no role, and the state znode says that it follows broker 1 in leader epoch 0",
        (state, rest),
        {"count": 1, "roles": 2},
    )


def test_a_leader_that_was_told_nothing() -> None:
    story, _, _ = settled()
    story.restarted(100, "b1")
    story.rest(2000)
    assert story.found().why == "t-0: b1 has no role, and the state znode says that it leads in leader epoch 0"


def test_a_broker_that_follows_a_former_leader() -> None:
    story, _, follows = settled()
    state = story.state(500, 1, 1)
    story.says(510, "b1", LEADS, leader_epoch=1)
    rest = story.rest(2000)
    finding = story.found()
    assert finding.witness == (state, follows, rest)
    assert finding.why == (
        "t-0: b2 follows broker 1 in leader epoch 0, "
        "and the state znode says that it follows broker 1 in leader epoch 1"
    )


def test_a_leader_that_does_not_know_its_successor() -> None:
    story, _, _ = settled()
    story.state(500, 2, 1)
    story.says(510, "b2", LEADS, leader_epoch=1)
    story.rest(2000)
    assert story.found().why.startswith("t-0: b1 leads in leader epoch 0, and the state znode says that it follows")


def test_a_replica_that_has_ended() -> None:
    story, _, _ = settled()
    story.says(500, "b2", REPLICA_ENDED, role="offline")
    story.rest(2000)
    assert story.found().outcome is Outcome.VIOLATED


def test_before_rest_a_broker_may_be_late() -> None:
    story, _, _ = settled()
    story.state(500, 1, 1)
    story.says(900, "b1", LEADS, leader_epoch=1)
    story.says(900, "b2", FOLLOWS, leader=1, leader_epoch=1)
    story.rest(2000)
    assert story.found().outcome is Outcome.CLEAN


def test_a_dead_broker_and_a_partition_without_a_leader_are_left_out() -> None:
    story, _, _ = settled()
    story.gone(100, 2)
    story.rest(2000)
    assert story.found().measures == {"count": 0, "roles": 1}
    story = Cluster()
    story.state(5, -1, 0)
    story.rest(2000)
    finding = story.found()
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no live replica had a leader at rest")


def test_a_broker_has_half_a_second_to_hear_of_a_state() -> None:
    for rest_ms, outcome in ((1500, Outcome.UNKNOWN), (1700, Outcome.VIOLATED)):
        story, _, _ = settled()
        story.state(1100, 2, 1)
        story.rest(rest_ms)
        assert story.found().outcome is outcome


def test_another_isr_of_the_same_leader_is_no_order() -> None:
    story, _, _ = settled()
    story.says(1000, "b2", REPLICA_ENDED, role="stopped")
    story.state(1900, 1, 0)
    story.rest(2000)
    assert story.found().outcome is Outcome.VIOLATED


def test_a_broker_that_is_not_a_replica_any_more_has_no_role() -> None:
    story, _, _ = settled()
    moved = story.state(100, 2, 1)
    leads = story.says(101, "b2", LEADS, leader_epoch=1)
    story.assigned(102, 2)
    rest = story.rest(5000)
    finding = story.found()
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "t-0: b1 leads in leader epoch 0, and is not a replica"
    assert finding.witness[0] == moved and finding.witness[2] == rest
    assert leads not in finding.witness


def test_one_that_was_told_or_is_gone_has_none() -> None:
    for end in ("told", "gone"):
        story, _, _ = settled()
        story.state(100, 2, 1)
        story.says(101, "b2", LEADS, leader_epoch=1)
        story.assigned(102, 2)
        if end == "told":
            story.says(103, "b1", REPLICA_ENDED)
        else:
            story.gone(103, 1)
        story.rest(5000)
        assert story.found().outcome is Outcome.CLEAN, end


def deleted_while_both_have_a_role() -> tuple[Cluster, EventId, EventId]:
    """The deletion, and the role of b2. b1 gives its own up."""
    story = Cluster()
    story.state(10, 1, 0)
    story.says(11, "b1", LEADS, leader_epoch=0)
    followed = story.says(12, "b2", FOLLOWS, leader=1, leader_epoch=0)
    story.says(100, "b1", REPLICA_ENDED, role="stopped")
    return story, story._logged(110, Kind.DELETED, "/brokers/topics/t/partitions/0/state"), followed


def test_a_broker_that_keeps_its_role_in_a_deleted_partition() -> None:
    story, gone, followed = deleted_while_both_have_a_role()
    rest = story.rest(900)
    finding = story.found()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (gone, followed, rest))
    assert finding.why == "t-0: b2 follows broker 1 in leader epoch 0, and the partition is deleted"


def test_brokers_that_give_up_their_roles_in_a_deleted_partition() -> None:
    story, _, _ = deleted_while_both_have_a_role()
    story.says(120, "b2", REPLICA_ENDED, role="stopped")
    story.rest(900)
    assert story.found().measures["count"] == 0


def test_a_deletion_of_a_moment_ago() -> None:
    story, _, _ = deleted_while_both_have_a_role()
    story.rest(600)
    assert story.found().measures["count"] == 0


@pytest.mark.parametrize(("ends", "outcome"), [(("b1", "b2"), Outcome.UNKNOWN), (("b1",), Outcome.VIOLATED)])
def test_while_a_deletion_waits_nobody_has_a_role(ends: tuple[str, ...], outcome: Outcome) -> None:
    """The state znode still stands, perhaps because a broker with a replica is dead."""
    story, _, follows = settled()
    asked = story._logged(3000, Kind.CREATED, "/admin/delete_topics/t")
    for actor in ends:
        story.says(3100, actor, REPLICA_ENDED, role="stopped")
    rest = story.rest(4000)
    finding = story.found()
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.witness == (asked, follows, rest)
        assert finding.why == "t-0: b2 follows broker 1 in leader epoch 0, and its topic is to be deleted"
