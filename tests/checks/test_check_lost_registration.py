"""lost_registration, on histories written by hand: brokers 1 and 2; the session of broker 1 ends, and 0x11 follows."""

from __future__ import annotations

import pytest
from broker_story import Brokers

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import SHUTS_DOWN

EXPIRED = 2000
NEXT = EXPIRED + 300
LATE = NEXT + 1500


class Sessions(Brokers):
    def __init__(self, world: str = "simulated") -> None:
        super().__init__(world=world)
        self.first = self.registered(1, 1)
        self.registered(2, 2)

    def expired(self, ms: float = EXPIRED, number: int = 1, session: str = "0x1") -> None:
        zxid = self._zxid + 1
        path, gone = f"/brokers/ids/{number}", {"with_session": True}
        self.registry(ms, Kind.SESSION_CLOSED, None, session, group=None)
        self.registry(ms, Kind.DELETED, path, session, group=None, zxid=zxid, detail=gone)

    def judged(self, at_ms: float = LATE) -> Finding:
        return self.taken_down("lost_registration", at_ms)


def test_each_session_has_its_registration() -> None:
    story = Sessions()
    story.expired()
    story.connected(NEXT, 1, "0x11")
    story.registered(NEXT + 40, 1, "0x11")
    finding = story.judged()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "registrations": 3, "longest_us": 40_000}


def test_a_broker_that_goes_on_without() -> None:
    story = Sessions()
    story.expired()
    connected = story.connected(NEXT, 1, "0x11")
    assert story.judged() == Finding(
        Outcome.VIOLATED,
        "b1 was in session 0x11 without a registration for 1.500 s, and in touch",
        (connected,),
        {"count": 1, "registrations": 2, "longest_us": 1_500_000},
    )


def test_a_moment_is_not_enough() -> None:
    story = Sessions()
    story.expired()
    story.connected(NEXT, 1, "0x11")
    assert story.judged(NEXT + 999).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("after_ms", "outcome"), [(4900, Outcome.CLEAN), (5100, Outcome.VIOLATED)])
def test_in_real_time_it_has_five_seconds(after_ms: int, outcome: Outcome) -> None:
    story = Sessions(world="processes")
    story.expired()
    story.connected(NEXT, 1, "0x11")
    assert story.judged(NEXT + after_ms).outcome is outcome


def test_a_registration_that_is_renewed_in_its_session_came_with_the_first() -> None:
    story = Sessions()
    story.expired()
    story.registered(NEXT, 1, "0x11")
    story.unregistered(NEXT + 1200, 1, "0x11")
    story.registry(NEXT + 1210, Kind.CREATED, "/brokers/ids/1", "0x11", group=None)
    assert story.judged().outcome is Outcome.CLEAN


def test_a_registration_that_comes_late() -> None:
    story = Sessions()
    story.expired()
    story.connected(NEXT, 1, "0x11")
    story.registered(NEXT + 1200, 1, "0x11")
    assert story.judged().outcome is Outcome.VIOLATED


def test_the_clock_of_the_registry_may_be_ahead() -> None:
    story = Sessions()
    story.expired()
    story.registry(NEXT - 0.2, Kind.CREATED, "/brokers/ids/1", "0x11", group=None)
    story.connected(NEXT, 1, "0x11")
    story.reported(NEXT + 5, 1, broker_epoch=story._zxid)
    assert story.judged().outcome is Outcome.CLEAN


def test_the_znode_of_the_former_session() -> None:
    """The server has not ended it yet, and the broker takes its znode for its own."""
    story = Sessions()
    story.connected(NEXT, 1, "0x11")
    told = story.reported(NEXT + 20, 1, broker_epoch=1)
    finding = story.judged(NEXT + 100)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, told))
    assert finding.why == ("b1 takes itself for registered with broker epoch 1, of session 0x1, and is in session 0x11")


def test_the_znode_of_a_former_life() -> None:
    story = Sessions()
    story.killed(1500, "b1")
    story.restarted(1600, 1)
    story.connected(1700, 1, "0x11")
    story.reported(1720, 1, broker_epoch=1)
    assert story.judged(1800).outcome is Outcome.VIOLATED


def test_an_epoch_that_no_registration_has() -> None:
    story = Sessions()
    told = story.reported(500, 1, broker_epoch=99)
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (told,))


def test_a_registration_that_goes_before_its_session() -> None:
    story = Sessions()
    gone = story.unregistered(EXPIRED, 1)
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, gone))
    story = Sessions()
    story.unregistered(EXPIRED, 1)
    story.registered(EXPIRED + 100, 1)
    assert story.judged().outcome is Outcome.CLEAN
    story = Sessions()
    story.unregistered(EXPIRED, 1)
    story.registry(EXPIRED + 100, Kind.SESSION_CLOSED, None, "0x1", group=None)
    assert story.judged().outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("next_ms", "outcome"), [(900, Outcome.CLEAN), (1100, Outcome.VIOLATED), (None, Outcome.VIOLATED)]
)
def test_a_broker_that_has_no_session(next_ms: int | None, outcome: Outcome) -> None:
    story = Sessions()
    story.expired()
    heard = story.add(NEXT, "b1", Kind.EXPIRED, session="0x1", group=None)
    if next_ms is not None:
        story.registered(NEXT + next_ms, 1, "0x11")
    finding = story.judged()
    assert finding.outcome is outcome
    assert finding.witness == ((heard,) if outcome is Outcome.VIOLATED else ())


def test_a_registration_that_does_not_go_with_its_session() -> None:
    story = Sessions()
    path, stays = "/brokers/ids/3", {"ephemeral": False}
    story.connected(100, 3)
    created = story.registry(100, Kind.CREATED, path, "0x3", detail=stays, group=None)
    told = story.reported(110, 3, broker_epoch=story._zxid)
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (created, told))
    assert finding.why == "b3 takes itself for registered with broker epoch 3, whose znode is not ephemeral"


def test_a_registration_that_another_session_takes_over() -> None:
    story = Sessions()
    gone = story.registry(EXPIRED, Kind.DELETED, "/brokers/ids/1", "0x2", group=None)
    story.registry(EXPIRED + 10, Kind.CREATED, "/brokers/ids/1", "0x2", group=None)
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (story.first, gone))


def test_a_first_registration_may_take_long() -> None:
    story = Sessions()
    story.connected(100, 3, "0x3")
    assert story.judged().outcome is Outcome.CLEAN
    story = Sessions()
    story.killed(500, "b1")
    story.expired()
    story.restarted(EXPIRED, 1)
    story.connected(NEXT, 1, "0x11")
    assert story.judged().outcome is Outcome.CLEAN


def disconnected(story: Sessions, connected: EventId) -> None:
    story.add(NEXT + 800, "b1", Kind.DISCONNECTED, session="0x11", group=None, cause=connected)


def test_only_time_in_touch_counts() -> None:
    story = Sessions()
    story.expired()
    disconnected(story, story.connected(NEXT, 1, "0x11"))
    assert story.judged().outcome is Outcome.CLEAN
    story = Sessions()
    story.expired()
    disconnected(story, story.connected(NEXT, 1, "0x11"))
    story.connected(LATE, 1, "0x11")
    assert story.judged(LATE + 1100).outcome is Outcome.VIOLATED


def test_a_broker_that_shuts_down_need_not_register() -> None:
    story = Sessions()
    story.expired()
    story.connected(NEXT, 1, "0x11")
    story.broker(NEXT + 500, 1, SHUTS_DOWN, partition=None)
    assert story.judged().outcome is Outcome.CLEAN
