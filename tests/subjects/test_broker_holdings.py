"""broker_holdings, on histories written by hand: partition t-0 with the replicas 1 and 2."""

from __future__ import annotations

import json

import pytest
from history_story import Story

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.intervals import KILL, PAUSE, RESTART
from rebalance_lab.history.replicas import (
    APPENDED,
    CONTROLS,
    CONTROLS_NO_MORE,
    FOLLOWS,
    LEADS,
    REPLICA_ENDED,
)
from rebalance_lab.subjects.broker_log.holdings import CONTROLLERSHIP, RUN_GAP_MS, broker_holdings

PLACE = ("", "t", 0)


class Brokers(Story):
    """Brokers b1 and b2 with their sessions and registrations."""

    def __init__(self) -> None:
        super().__init__()
        self._zxid = 0
        for number in (1, 2):
            self.add(0, f"b{number}", Kind.CONNECTED, session=f"0x{number}")
            self.logged(0, Kind.CREATED, f"/brokers/ids/{number}", session=f"0x{number}")

    def logged(self, ms: float, kind: Kind, path: str, data: str = "{}", session: str = "0x9") -> None:
        self._zxid += 1
        self.add(ms, "zookeeper", kind, session=session, zxid=self._zxid, detail={"path": path, "data": data})

    def state(self, ms: float, leader: int, isr: tuple[int, ...] = (1, 2), kind: Kind = Kind.CHANGED) -> None:
        data = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": 0, "isr": isr}
        self.logged(ms, kind, "/brokers/topics/t/partitions/0/state", json.dumps(data))

    def controller(self, ms: float, number: int) -> None:
        data = {"version": 1, "brokerid": number, "timestamp": "1"}
        self.logged(ms, Kind.CREATED, "/controller", json.dumps(data), session=f"0x{number}")

    def says(self, ms: float, actor: str, kind: Kind) -> None:
        self.add(ms, actor, kind, member=actor, topic="t", partition=0)

    def controls(self, ms: float, actor: str, kind: Kind = CONTROLS) -> None:
        self.add(ms, actor, kind, member=actor, detail={"epoch": 1})

    def breaks(self, ms: float, name: str, target: str) -> None:
        self.add(ms, "runner", Kind.FAULT_BEGAN, detail={"fault": name, "target": target})

    def end(self, ms: float) -> None:
        self.add(ms, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})

    def had(self, layer: Layer, place: tuple[str, str, int] = PLACE) -> list[tuple[str, float, float]]:
        """Who had the place, from and until when (ms after the first event), by one layer."""
        history = self.history()
        origin_us = min(event.at_us for event in history.events)
        return sorted(
            (each.member, (each.begin_us - origin_us) / 1000, (each.end_us - origin_us) / 1000)
            for each in broker_holdings(history)
            if each.layer is layer and each.place == place
        )


@pytest.mark.parametrize("end", [FOLLOWS, REPLICA_ENDED])
def test_a_belief_to_lead_ends_with_another_role(end: Kind) -> None:
    story = Brokers()
    story.says(10, "b1", LEADS)
    story.says(20, "b1", LEADS)  # a further epoch
    story.says(30, "b1", end)
    story.end(100)
    assert story.had(Layer.BELIEF) == [("b1", 10, 30)]


def test_a_leader_that_is_killed_believes_nothing_until_it_is_told_again() -> None:
    story = Brokers()
    story.says(10, "b1", LEADS)
    story.breaks(20, KILL, "b1")
    story.says(21, "b1", LEADS)  # on its way when the signal was sent
    story.breaks(40, RESTART, "b1")
    story.says(50, "b1", LEADS)
    story.end(100)
    assert story.had(Layer.BELIEF) == [("b1", 10, 20), ("b1", 50, 100)]


def test_a_deposed_leader_that_is_paused_believes_on() -> None:
    story = Brokers()
    story.state(5, 1, kind=Kind.CREATED)
    story.says(10, "b1", LEADS)
    story.breaks(20, PAUSE, "b1")
    story.state(30, 2, (2,))
    story.says(35, "b2", LEADS)
    story.says(60, "b1", FOLLOWS)
    story.end(100)
    assert story.had(Layer.BELIEF) == [("b1", 10, 60), ("b2", 35, 100)]
    assert story.had(Layer.REGISTRY) == [("b1", 5, 30), ("b2", 30, 100)]


def test_nobody_leads_while_the_state_znode_names_none() -> None:
    story = Brokers()
    story.state(5, 1, kind=Kind.CREATED)
    story.state(20, 1, (1,))  # another ISR
    story.state(30, -1, (1,))
    story.state(50, 2, (2,))
    story.end(100)
    assert story.had(Layer.REGISTRY) == [("b1", 5, 30), ("b2", 50, 100)]


def test_a_broker_that_never_registered_keeps_its_number() -> None:
    story = Brokers()
    story.state(5, 7, (7,), kind=Kind.CREATED)
    story.end(100)
    assert story.had(Layer.REGISTRY) == [("broker 7", 5, 100)]


def test_appends_far_apart_are_two_runs() -> None:
    story = Brokers()
    for ms in (10, 20, 20 + RUN_GAP_MS, 21 + 2 * RUN_GAP_MS):
        story.says(ms, "b1", APPENDED)
    story.says(15, "b2", APPENDED)
    story.end(5000)
    assert story.had(Layer.EFFECT) == [
        ("b1", 10, 20 + RUN_GAP_MS),
        ("b1", 21 + 2 * RUN_GAP_MS, 21 + 2 * RUN_GAP_MS),
        ("b2", 15, 15),
    ]


def test_two_controllers_at_once() -> None:
    story = Brokers()
    story.controller(5, 1)
    story.controls(6, "b1")
    story.logged(20, Kind.DELETED, "/controller", session="0x1")
    story.controller(21, 2)
    story.controls(22, "b2")
    story.controls(50, "b1", CONTROLS_NO_MORE)
    story.end(100)
    assert story.had(Layer.BELIEF, CONTROLLERSHIP) == [("b1", 6, 50), ("b2", 22, 100)]
    assert story.had(Layer.REGISTRY, CONTROLLERSHIP) == [("b1", 5, 20), ("b2", 21, 100)]
    assert story.had(Layer.BELIEF) == []


def test_nobody_leads_once_the_state_is_deleted() -> None:
    story = Brokers()
    story.state(10, 1, kind=Kind.CREATED)
    story.logged(20, Kind.DELETED, "/brokers/topics/t/partitions/0/state", "")
    story.state(30, 2, kind=Kind.CREATED)
    story.end(40)
    assert story.had(Layer.REGISTRY) == [("b1", 10, 20), ("b2", 30, 40)]
