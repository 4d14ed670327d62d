"""Rest, read from events: each reason for unrest, one by one."""

import pytest

from rebalance_lab.history.events import LAYER_OF, Event, Kind
from rebalance_lab.history.rest import RestTracker


class Story:
    """Feeds a tracker events of m1 (and of the server), a microsecond apart."""

    def __init__(self) -> None:
        self.tracker = RestTracker()
        self.n = 0

    def add(self, kind: Kind, actor: str = "m1", **fields: object) -> bool:
        self.n += 1
        event = Event(actor=actor, n=self.n, at_us=self.n, layer=LAYER_OF[kind], kind=kind, **fields)  # type: ignore[arg-type]
        return self.tracker.feed(event)

    @property
    def busy(self) -> str | None:
        return self.tracker.busy()


@pytest.fixture
def settled() -> Story:
    story = Story()
    story.add(Kind.MEMBER_STARTED, member="g_m1")
    story.add(Kind.CONNECTED, session="0x1")
    story.add(Kind.REBALANCE_BEGAN)
    story.add(Kind.REBALANCE_ENDED)
    return story


def test_a_settled_member_rests(settled: Story) -> None:
    assert settled.busy is None


@pytest.mark.parametrize(
    ("kind", "why", "ending"),
    [
        (Kind.DISCONNECTED, "m1: it is not connected", Kind.CONNECTED),
        (Kind.REBALANCE_BEGAN, "m1: it rebalances", Kind.REBALANCE_ENDED),
        (Kind.REBALANCE_TRIGGERED, "m1: a rebalance is triggered", Kind.REBALANCE_BEGAN),
        (Kind.NOTIFICATION_QUEUED, "m1: 1 notifications wait", Kind.NOTIFICATION_HANDLED),
    ],
)
def test_each_kind_of_unrest_begins_and_ends(settled: Story, kind: Kind, why: str, ending: Kind) -> None:
    settled.add(kind)
    assert settled.busy == why
    settled.add(ending, session="0x1")
    assert settled.busy != why


def test_a_zombie_does_not_rest_before_it_knows(settled: Story) -> None:
    settled.add(Kind.SESSION_CLOSED, "zookeeper", session="0x1")
    assert settled.busy == "m1: it does not know yet that its session has ended"
    settled.add(Kind.EXPIRED, session="0x1")
    settled.add(Kind.CONNECTED, session="0x2")
    assert settled.busy is None


def test_a_killed_member_counts_until_its_session_is_closed(settled: Story) -> None:
    settled.add(Kind.FAULT_BEGAN, "runner", detail={"fault": "kill", "target": "m1"})
    assert settled.busy == "m1: its session is not closed yet"
    settled.add(Kind.SESSION_CLOSED, "zookeeper", session="0x1")
    assert settled.busy is None


def test_owner_changes_move_the_clock_and_work_does_not(settled: Story) -> None:
    before = settled.tracker.last_change_us
    assert not settled.add(Kind.WORKED, topic="t", partition=0)
    assert not settled.add(Kind.CREATED, "zookeeper")  # a znode of no group
    assert settled.tracker.last_change_us == before
    assert settled.add(Kind.CREATED, "zookeeper", group="g")
    assert settled.tracker.last_change_us == settled.n


def test_brokers_and_topics_move_the_clock(settled: Story) -> None:
    assert settled.add(Kind.CREATED, "zookeeper", detail={"path": "/brokers/ids/7"})
    assert settled.add(Kind.CHANGED, "zookeeper", detail={"path": "/brokers/topics/t"})
    assert settled.tracker.last_change_us == settled.n


@pytest.mark.parametrize("kind", [Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED])
def test_a_fault_moves_the_clock(settled: Story, kind: Kind) -> None:
    """A live runner has written a topic before it reads of it, and of what members make of it."""
    assert settled.add(kind, "runner", detail={"fault": "topic", "target": "t"})
    assert settled.tracker.last_change_us == settled.n
    assert settled.busy is None
